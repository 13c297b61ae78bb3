#include "engine/text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Pieces = std::vector<std::string_view>;

PreTokenizer Splits(const std::vector<std::string>& patterns) {
  Json parts = Json::array();
  for (const std::string& pattern : patterns) {
    parts.push_back({{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", pattern}}}});
  }
  parts.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  return PreTokenizer::Create({{"type", "Sequence"}, {"pretokenizers", parts}}, "t.json").value();
}

Pieces Cut(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  const absl::Status status = pre_tokenizer.Cut(text, pieces);
  EXPECT_TRUE(status.ok()) << status;
  return pieces;
}

TEST(PreTokenizer, MatchesAndWhatLiesBetweenThem) {
  EXPECT_THAT(Cut(Splits({R"(\d+)"}), "12ab3c"), ElementsAre("12", "ab", "3", "c"));
  EXPECT_THAT(Cut(Splits({R"(\d+)"}), "ab"), ElementsAre("ab"));
  EXPECT_THAT(Cut(Splits({R"(\d+)"}), ""), IsEmpty());
  EXPECT_THAT(Cut(Splits({}), "a b"), ElementsAre("a b"));
}

TEST(PreTokenizer, LaterSplitsSeeOnlyThePieces) {
  EXPECT_THAT(Cut(Splits({R"(\d+)", R"(b(?!\d))"}), "ab12b"), ElementsAre("a", "b", "12", "b"));
}

TEST(PreTokenizer, AnEmptyMatchCuts) {
  EXPECT_THAT(Cut(Splits({"(?=A)"}), "xAyA"), ElementsAre("x", "Ay", "A"));
  EXPECT_THAT(Cut(Splits({"A*"}), "xAy"), ElementsAre("x", "A", "y"));
  EXPECT_THAT(Cut(Splits({"(?=é)"}), "aéé"), ElementsAre("a", "é", "é"));
}

TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
  EXPECT_THAT(Cut(Splits({R"(\s+)"}), "a\u3000\u00a0b"), ElementsAre("a", "\u3000\u00a0", "b"));
  // U+180E was white space before Unicode 6.3.
  EXPECT_THAT(Cut(Splits({R"(\s)"}), "a\u180eb"), ElementsAre("a\u180eb"));
  EXPECT_THAT(Cut(Splits({R"([^\s]+)"}), "a\u180eb c"), ElementsAre("a\u180eb", " ", "c"));
  EXPECT_THAT(Cut(Splits({R"(\S)"}), " \u180e "), ElementsAre(" ", "\u180e", " "));
  EXPECT_THAT(Cut(Splits({R"(\\s)"}), R"(a\s)"), ElementsAre("a", R"(\s)"));
}

TEST(PreTokenizer, ByteLevelAloneCutsAsGpt2) {
  const auto pre_tokenizer =
      PreTokenizer::Create({{"type", "ByteLevel"}, {"add_prefix_space", false}}, "t.json");
  ASSERT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  EXPECT_THAT(Cut(*pre_tokenizer, "It's  42 é!"), ElementsAre("It", "'s", " ", " 42", " é", "!"));
  EXPECT_FALSE(pre_tokenizer->adds_prefix_space());
}

TEST(PreTokenizer, AMatchThatTakesTooLongIsAnError) {
  Pieces pieces;
  const absl::Status status = Splits({"(a+)+[bc]"}).Cut(std::string(100, 'a'), pieces);
  EXPECT_TRUE(absl::IsInternal(status)) << status;
}

TEST(PreTokenizer, DeepRecursionIsAnErrorOrAMatchButNeverCutShort) {
  const std::string text = std::string(200000, '(') + std::string(200000, ')');
  Pieces pieces;
  const absl::Status status = Splits({R"(\((?R)*\))"}).Cut(text, pieces);
  if (status.ok()) {
    EXPECT_THAT(pieces, ElementsAre(text));
  }
}

}  // namespace
}  // namespace nestor
