#include "engine/text/stop_matcher.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "engine/text/utf8.h"

namespace nestor {
namespace {

TEST(StopMatcher, ReleasesTextThatCannotBeginAStopString) {
  StopMatcher matcher({"END", "Nope"});
  EXPECT_EQ(matcher.Push("hello E"), "hello ");
  EXPECT_EQ(matcher.Push("N"), "");
  EXPECT_EQ(matcher.Push("o"), "E");  // "No" may still become "Nope"
  EXPECT_EQ(matcher.Push("w"), "Now");
  EXPECT_EQ(matcher.matched(), "");
  EXPECT_EQ(matcher.Push("EN"), "");
  EXPECT_EQ(matcher.Flush(), "EN");
}

TEST(StopMatcher, FindsAStopStringAcrossPieces) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.Push("a E"), "a ");
  EXPECT_EQ(matcher.Push("N"), "");
  EXPECT_EQ(matcher.Push("D and more"), "");
  EXPECT_EQ(matcher.matched(), "END");
  EXPECT_EQ(matcher.Push("never seen"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, TakesTheFirstCompleteAndOfThoseTheLongest) {
  StopMatcher first({"abcd", "bc"});
  EXPECT_EQ(first.Push("xabcd"), "xa");
  EXPECT_EQ(first.matched(), "bc");
  StopMatcher longest({"c", "bc"});
  EXPECT_EQ(longest.Push("abc"), "a");
  EXPECT_EQ(longest.matched(), "bc");
}

TEST(StopMatcher, WithoutStopStringsEverythingPasses) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.Push("text"), "text");
  EXPECT_EQ(matcher.Push(""), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcherDeathTest, AnEmptyStopStringIsAFaultOfTheCaller) {
  EXPECT_DEATH(StopMatcher({""}), "an empty stop string");
}

struct Found {
  std::string text;  // before the match
  std::string stop;  // empty: none
};

Found SearchWhole(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::string longest;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop) && stop.size() > longest.size()) longest = stop;
    }
    if (!longest.empty()) return {text.substr(0, end - longest.size()), longest};
  }
  return {text, ""};
}

TEST(StopMatcher, EqualsASearchInTheWholeTextHoweverItIsCut) {
  std::mt19937 random(5);
  const std::vector<std::string> letters = {"a", "b", "é", "中"};
  const auto word = [&](size_t length_max) {
    std::string text;
    for (size_t i = random() % length_max + 1; i > 0; --i) text += letters[random() % letters.size()];
    return text;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = word(5);
    StopMatcher matcher(stops);
    std::string text, released;
    for (size_t pieces = random() % 10; pieces > 0; --pieces) {
      const std::string piece = word(6);
      text += piece;
      const std::string out = matcher.Push(piece);
      EXPECT_EQ(FirstInvalidUtf8(out), std::nullopt);
      released += out;
    }
    released += matcher.Flush();
    const Found expected = SearchWhole(text, stops);
    EXPECT_EQ(released, expected.text) << text;
    EXPECT_EQ(matcher.matched(), expected.stop) << text;
  }
}

}  // namespace
}  // namespace nestor
