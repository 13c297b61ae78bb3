#include "engine/text/byte_level.h"

#include <gtest/gtest.h>

namespace nestor {
namespace {

TEST(ByteLevel, MapsTheAlphabetToBytes) {
  EXPECT_EQ(BytesOfAlphabet("ĠaĊ"), " a\n");
  EXPECT_EQ(BytesOfAlphabet("Ã©"), "é");
  EXPECT_EQ(BytesOfAlphabet(""), "");
  EXPECT_EQ(BytesOfAlphabet("a b"), std::nullopt);
  EXPECT_EQ(BytesOfAlphabet("中"), std::nullopt);
  EXPECT_EQ(BytesOfAlphabet("\u0143"), "\xAD");  // the last of the alphabet
  EXPECT_EQ(BytesOfAlphabet("\u0144"), std::nullopt);
}

}  // namespace
}  // namespace nestor
