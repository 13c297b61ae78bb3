#include "engine/text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nestor {
namespace {

// Single bytes have their own value as id; merges over "ab" up to four letters follow from 256 on.
struct TestBpe {
  Bpe::Vocabulary vocabulary;
  std::vector<Bpe::Merge> merges;

  TestBpe() {
    for (int byte = 0; byte < 256; ++byte) vocabulary[std::string(1, static_cast<char>(byte))] = byte;
    for (const auto& [left, right] : {std::pair("a", "b"),
                                      {"b", "a"},
                                      {"a", "a"},
                                      {"ab", "ab"},
                                      {"ba", "b"},
                                      {"aa", "aa"},
                                      {"b", "b"},
                                      {"bb", "ab"},
                                      {"a", "ba"}}) {
      vocabulary.try_emplace(std::string(left) + right, static_cast<int32_t>(vocabulary.size()));
      merges.push_back(MergeOf(left, right));
    }
  }

  Bpe::Merge MergeOf(const std::string& left, const std::string& right) const {
    return {vocabulary.at(left), vocabulary.at(right), vocabulary.at(left + right)};
  }
  Bpe Make(bool ignore_merges = false) const {
    return Bpe::Create(vocabulary, merges, ignore_merges, "t.json").value();
  }
};

std::vector<int32_t> Encode(const Bpe& bpe, std::string_view piece) {
  std::vector<int32_t> ids;
  bpe.Encode(piece, ids);
  return ids;
}

// By the definition: the best merge anywhere, the leftmost of equal ones, again and again.
std::vector<int32_t> EncodeByDefinition(const TestBpe& bpe, const std::string& text) {
  std::vector<int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
  for (bool merged = true; merged;) {
    merged = false;
    for (size_t rank = 0; rank < bpe.merges.size() && !merged; ++rank) {
      const Bpe::Merge& merge = bpe.merges[rank];
      const std::vector<int32_t> pair = {merge.left, merge.right};
      const auto found = std::search(ids.begin(), ids.end(), pair.begin(), pair.end());
      if (found == ids.end()) continue;
      *found = merge.result;
      ids.erase(found + 1);
      merged = true;
    }
  }
  return ids;
}

TEST(Bpe, ShortAndLongPiecesFollowTheDefinition) {
  const TestBpe test;
  const Bpe bpe = test.Make();
  std::mt19937 random(7);
  for (size_t length = 0; length <= 200; ++length) {  // short pieces are at most 48 bytes
    std::string text;
    for (size_t i = 0; i < length; ++i) text += "aaabbbc"[random() % 7];
    EXPECT_EQ(Encode(bpe, text), EncodeByDefinition(test, text)) << text;
  }
}

TEST(Bpe, AppendsToTheIds) {
  std::vector<int32_t> ids = {7};
  TestBpe().Make().Encode("abc", ids);
  EXPECT_EQ(ids, std::vector<int32_t>({7, 256, 'c'}));
}

TEST(Bpe, EarlierMergesComeFirst) {
  TestBpe test;
  test.merges = {test.MergeOf("a", "b"), test.MergeOf("b", "b")};
  EXPECT_EQ(Encode(test.Make(), "abb"), std::vector<int32_t>({test.vocabulary["ab"], 'b'}));
  std::swap(test.merges[0], test.merges[1]);
  EXPECT_EQ(Encode(test.Make(), "abb"), std::vector<int32_t>({'a', test.vocabulary["bb"]}));
}

TEST(Bpe, IgnoreMergesTakesWholeTokensFirst) {
  TestBpe test;
  test.vocabulary["cab"] = 1000;  // no merge leads there
  EXPECT_EQ(Encode(test.Make(/*ignore_merges=*/true), "cab"), std::vector<int32_t>({1000}));
  EXPECT_EQ(Encode(test.Make(/*ignore_merges=*/false), "cab"), std::vector<int32_t>({'c', 256}));
}

TEST(Bpe, OfTwoEqualMergesTheLastCounts) {
  TestBpe test;
  test.merges = {test.MergeOf("a", "b"), test.MergeOf("b", "a"), test.MergeOf("a", "b")};
  EXPECT_EQ(Encode(test.Make(), "aba"), std::vector<int32_t>({'a', test.vocabulary["ba"]}));
}

TEST(Bpe, EveryByteNeedsAToken) {
  TestBpe test;
  test.vocabulary.erase(std::string(1, '\0'));
  const auto bpe = Bpe::Create(test.vocabulary, test.merges, /*ignore_merges=*/false, "t.json");
  EXPECT_EQ(bpe.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(bpe.status().message(),
            "t.json: key 'model.vocab': expected a token for each of 256 bytes, found none for byte 0");
}

}  // namespace
}  // namespace nestor
