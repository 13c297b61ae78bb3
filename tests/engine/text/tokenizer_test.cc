#include "engine/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/base/file.h"
#include "engine/text/tokenizer_golden.h"
#include "tests/engine/text/test_tokenizer.h"

namespace nestor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Ids = std::vector<int32_t>;

constexpr int32_t kImEnd = 11, kThink = 12;

Ids Encode(const Tokenizer& tokenizer, std::string_view text, absl::Span<const TextRange> plain = {}) {
  const absl::StatusOr<Ids> ids = tokenizer.Encode(text, plain);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.value_or(Ids());
}

void ExpectGolden(const Tokenizer& tokenizer, const std::string& path) {
  const absl::StatusOr<TokenizerGoldenReport> report = CheckTokenizerGolden(tokenizer, path);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->lines, 238);
  EXPECT_EQ(report->failures, 0);
  EXPECT_THAT(report->messages, IsEmpty());
}

TEST(Tokenizer, MatchesHuggingFace) {
  ExpectGolden(AbacusTokenizer(), NESTOR_TEST_DATA_DIR "/tokenizer/abacus-encodings.jsonl");
}

// Where the files of a tokenizer of real size lie: 131,072 tokens.
std::string RealTokenizerFolder() {
  const char* const folder = std::getenv("NESTOR_GOLDEN_TOKENIZER_DIR");
  return folder != nullptr ? folder : NESTOR_SOURCE_DIR "/../shared/golden/tokenizer";
}

TEST(Tokenizer, MatchesHuggingFaceAtRealScale) {
  const std::string folder = RealTokenizerFolder();
  if (!FileExists(folder + "/tokenizer.json")) {
    GTEST_SKIP() << folder << ": expected tokenizer.json and encodings.jsonl, found none; "
                 << "NESTOR_GOLDEN_TOKENIZER_DIR names the folder";
  }
  const absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Load(folder + "/tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->vocab_size(), 131072);
  ExpectGolden(*tokenizer, folder + "/encodings.jsonl");
}

TEST(Tokenizer, TellsAboutItsTokens) {
  const Tokenizer& tokenizer = AbacusTokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), 384);
  EXPECT_EQ(tokenizer.TokenId("<|im_end|>"), kImEnd);
  EXPECT_EQ(tokenizer.TokenId("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.TokenBytes(kThink), "<think>");
  EXPECT_TRUE(tokenizer.IsSpecial(kImEnd));
  EXPECT_FALSE(tokenizer.IsSpecial(kThink));
  for (const int32_t id : {-1, 384, 1 << 30}) {
    EXPECT_EQ(tokenizer.TokenBytes(id), "");
    EXPECT_FALSE(tokenizer.IsSpecial(id));
    EXPECT_EQ(tokenizer.Decode({id}, false), "");
  }
}

TEST(Tokenizer, PlainRangesHideAddedTokens) {
  const Tokenizer& tokenizer = AbacusTokenizer();
  const std::string text = "a<|im_end|>b<think>";
  EXPECT_THAT(Encode(tokenizer, text), Contains(kImEnd));
  const Ids plain = Encode(tokenizer, text, {{{0, text.size()}}});
  EXPECT_THAT(plain, Not(Contains(kImEnd)));
  EXPECT_THAT(plain, Not(Contains(kThink)));
  EXPECT_EQ(tokenizer.Decode(plain, /*skip_special=*/true), text);
  // One plain byte of a token, at either end, is enough.
  EXPECT_THAT(Encode(tokenizer, "<think>", {{{0, 1}}}), Not(Contains(kThink)));
  EXPECT_THAT(Encode(tokenizer, "<think>", {{{6, 7}}}), Not(Contains(kThink)));
  EXPECT_THAT(Encode(tokenizer, "<think>x", {{{7, 8}}}), Contains(kThink));
  EXPECT_THAT(Encode(tokenizer, "x<think>", {{{0, 1}}}), Contains(kThink));
}

TEST(Tokenizer, PlainRangesChangeNothingForOrdinaryText) {
  const std::string text = "Sort the words, 12 of them:  ascending\n\nplease";
  const Ids whole = Encode(AbacusTokenizer(), text);
  for (size_t begin = 0; begin < text.size(); ++begin) {
    EXPECT_EQ(Encode(AbacusTokenizer(), text, {{{begin, text.size()}}}), whole) << begin;
    EXPECT_EQ(Encode(AbacusTokenizer(), text, {{{0, begin}}}), whole) << begin;
  }
}

TEST(Tokenizer, APlainRangeDoesNotTakeAShorterTokenWithIt) {
  Json json = AbacusTokenizerJson();
  json["added_tokens"].push_back({{"id", 384}, {"content", "<x"}, {"special", true}});
  json["added_tokens"].push_back({{"id", 385}, {"content", "<x>"}, {"special", true}});
  const absl::StatusOr<Tokenizer> tokenizer = ParseTokenizer(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Encode(*tokenizer, "<x>"), ElementsAre(385));
  EXPECT_THAT(Encode(*tokenizer, "<x>", {{{2, 3}}}), Contains(384));
}

TEST(Tokenizer, ATokenAtTheVeryEndMayBeginLikeALongerOne) {
  Json json = AbacusTokenizerJson();
  json["added_tokens"].push_back({{"id", 384}, {"content", "<x"}, {"special", true}});
  json["added_tokens"].push_back({{"id", 385}, {"content", "<x>"}, {"special", true}});
  const absl::StatusOr<Tokenizer> tokenizer = ParseTokenizer(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const int32_t a = *tokenizer->TokenId("a");
  EXPECT_THAT(Encode(*tokenizer, "a<x"), ElementsAre(a, 384));
  EXPECT_THAT(Encode(*tokenizer, "a<x>"), ElementsAre(a, 385));
  EXPECT_THAT(Encode(*tokenizer, "<x<x>a"), ElementsAre(384, 385, a));
}

TEST(Tokenizer, PlainRangesThatTouchAreOneText) {
  const std::string text = "<think><think>";
  EXPECT_EQ(Encode(AbacusTokenizer(), text, {{{0, 3}, {3, 7}}}), Encode(AbacusTokenizer(), text, {{{0, 7}}}));
  EXPECT_THAT(Encode(AbacusTokenizer(), text, {{{0, 3}, {3, 7}, {7, 14}}}), Not(Contains(kThink)));
  EXPECT_THAT(Encode(AbacusTokenizer(), text, {{{0, 7}}}), Contains(kThink).Times(1));
}

TEST(Tokenizer, NormalizedAddedTokensComeSecond) {
  Json json = AbacusTokenizerJson();
  json["added_tokens"].push_back({{"id", 384}, {"content", "abc"}, {"normalized", true}});
  json["added_tokens"].push_back({{"id", 385}, {"content", "bcd"}, {"normalized", false}});
  const absl::StatusOr<Tokenizer> tokenizer = ParseTokenizer(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Encode(*tokenizer, "abcd"), ElementsAre(*tokenizer->TokenId("a"), 385));
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre(384));
  EXPECT_THAT(Encode(*tokenizer, "abc", {{{0, 3}}}), Not(Contains(384)));
}

TEST(Tokenizer, RefusesInvalidUtf8WithTheOffset) {
  for (const std::string_view text : {"ab\xFF", "ab\xC3", "ab\xED\xA0\x80", "ab\xC0\x80"}) {
    const auto ids = AbacusTokenizer().Encode(text);
    EXPECT_TRUE(absl::IsInvalidArgument(ids.status()));
    EXPECT_THAT(std::string(ids.status().message()), HasSubstr("offset 2"));
  }
}

TEST(Tokenizer, ReadsTheTokensBeforeAText) {
  EXPECT_THAT(AbacusTokenizer().prefix_tokens(), IsEmpty());
  const absl::StatusOr<Tokenizer> tokenizer = ParseTokenizer(PatchedTokenizerJson(R"({"post_processor": {
    "type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}]}})"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(tokenizer->prefix_tokens(), ElementsAre(1));
  EXPECT_THAT(Encode(*tokenizer, ""), IsEmpty());
}

// Hugging Face `tokenizers` gives the same pieces.
TEST(Tokenizer, AddsASpaceBeforeTheTextWhereTheFileSaysSo) {
  const absl::StatusOr<Tokenizer> tokenizer = ParseTokenizer(PatchedTokenizerJson(
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "pretokenizers": null}})"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, "a b<s> c<s>d"), false), " a b<s> c<s> d");
}

TEST(Tokenizer, AVeryLongPieceIsNotQuadratic) {
  const std::string text(1000000, 'a');
  const Ids ids = Encode(AbacusTokenizer(), text);
  EXPECT_EQ(AbacusTokenizer().Decode(ids, false), text);
}

}  // namespace
}  // namespace nestor
