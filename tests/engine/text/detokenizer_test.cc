#include "engine/text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/text/utf8.h"
#include "tests/engine/text/test_tokenizer.h"

namespace nestor {
namespace {

constexpr int32_t kImEnd = 11, kThink = 12;

// The tokens of single bytes.
std::vector<int32_t> ByteTokens(std::string_view bytes) {
  std::vector<int32_t> ids;
  for (const char byte : bytes) {
    for (int32_t id = 32; id < 288; ++id) {
      if (AbacusTokenizer().TokenBytes(id) == std::string(1, byte)) ids.push_back(id);
    }
  }
  EXPECT_EQ(ids.size(), bytes.size());
  return ids;
}

TEST(Detokenizer, HoldsBackHalfACharacter) {
  Detokenizer detokenizer(AbacusTokenizer(), /*skip_special=*/false);
  const std::vector<int32_t> ids = ByteTokens("a😀");
  EXPECT_EQ(detokenizer.Push(ids[0]), "a");
  for (int i = 1; i < 4; ++i) EXPECT_EQ(detokenizer.Push(ids[i]), "");
  EXPECT_EQ(detokenizer.Push(ids[4]), "😀");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(Detokenizer, ReplacesWhatCannotBecomeValid) {
  Detokenizer detokenizer(AbacusTokenizer(), /*skip_special=*/false);
  const std::vector<int32_t> ids = ByteTokens("\xF0\x9F\x61\xFF\xE4\xB8");
  EXPECT_EQ(detokenizer.Push(ids[0]), "");
  EXPECT_EQ(detokenizer.Push(ids[1]), "");
  EXPECT_EQ(detokenizer.Push(ids[2]), "\uFFFD\x61");
  EXPECT_EQ(detokenizer.Push(ids[3]), "\uFFFD");
  EXPECT_EQ(detokenizer.Push(ids[4]), "");
  EXPECT_EQ(detokenizer.Push(ids[5]), "");
  EXPECT_EQ(detokenizer.Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(Detokenizer, SkipsSpecialTokensOnRequest) {
  Detokenizer skipping(AbacusTokenizer(), /*skip_special=*/true);
  EXPECT_EQ(skipping.Push(kImEnd), "");
  EXPECT_EQ(skipping.Push(kThink), "<think>");  // added, but not special
  Detokenizer keeping(AbacusTokenizer(), /*skip_special=*/false);
  EXPECT_EQ(keeping.Push(kImEnd), "<|im_end|>");
}

TEST(Detokenizer, EqualsDecodingTheWhole) {
  std::mt19937 random(11);
  const auto vocab_size = static_cast<uint32_t>(AbacusTokenizer().vocab_size());
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids(random() % 30);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % (vocab_size + 1));  // one of them unknown
    const bool skip_special = round % 2 == 0;
    Detokenizer detokenizer(AbacusTokenizer(), skip_special);
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.Push(id);
      EXPECT_EQ(FirstInvalidUtf8(piece), std::nullopt);
      text += piece;
    }
    text += detokenizer.Flush();
    EXPECT_EQ(text, AbacusTokenizer().Decode(ids, skip_special));
  }
}

}  // namespace
}  // namespace nestor
