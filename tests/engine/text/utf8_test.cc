#include "engine/text/utf8.h"

#include <gtest/gtest.h>

namespace nestor {
namespace {

TEST(Utf8, FindsTheFirstInvalidByte) {
  EXPECT_EQ(FirstInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("aé中😀\U0010FFFF"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("a\x80"), 1u);
  EXPECT_EQ(FirstInvalidUtf8("é\xC3"), 2u);
  EXPECT_EQ(FirstInvalidUtf8("\xC1\xBF"), 0u);          // overlong
  EXPECT_EQ(FirstInvalidUtf8("\xE0\x9F\xBF"), 0u);      // overlong
  EXPECT_EQ(FirstInvalidUtf8("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(FirstInvalidUtf8("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(FirstInvalidUtf8("\xF5\x80\x80\x80"), 0u);
}

std::string EncodeUtf8(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePointAndItsBeginnings) {
  for (char32_t code = 0; code < 0x120000; code += code < 0x3000 ? 1 : 0x80) {
    const std::string bytes = EncodeUtf8(code);
    const bool valid = code < 0x110000 && (code < 0xD800 || code >= 0xE000);
    EXPECT_EQ(FirstInvalidUtf8(bytes), valid ? std::nullopt : std::optional<size_t>(0))
        << static_cast<uint32_t>(code);
    if (!valid) continue;
    EXPECT_EQ(DecodeUtf8(bytes), code);
    for (size_t length = 1; length < bytes.size(); ++length) {
      const Utf8Unit unit = NextUtf8(std::string_view(bytes).substr(0, length));
      EXPECT_EQ(unit.kind, Utf8Unit::Kind::kIncomplete);
      EXPECT_EQ(unit.length, length);
    }
  }
}

TEST(Utf8, ReplacesEachMaximalInvalidPart) {  // as Python's errors="replace" and Rust's from_utf8_lossy
  EXPECT_EQ(ReplaceInvalidUtf8("aé"), "aé");
  EXPECT_EQ(ReplaceInvalidUtf8("\xFF\xFF"), "\uFFFD\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\x98x"), "\uFFFDx");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE4\xB8\xE4\xB8\xAD"), "\uFFFD中");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8, LeavesOutAnIncompleteEnd) {
  EXPECT_EQ(CompleteUtf8Length(""), 0u);
  EXPECT_EQ(CompleteUtf8Length("a中"), 4u);
  EXPECT_EQ(CompleteUtf8Length("a\xE4\xB8"), 1u);
  EXPECT_EQ(CompleteUtf8Length("a\xF0\x9F\x98"), 1u);
  EXPECT_EQ(CompleteUtf8Length("a\xFF"), 2u);  // can never become valid
}

TEST(Utf8, DecodesCodePoints) {
  EXPECT_EQ(DecodeUtf8("a"), U'a');
  EXPECT_EQ(DecodeUtf8("éa"), U'é');
  EXPECT_EQ(DecodeUtf8("中"), U'中');
  EXPECT_EQ(DecodeUtf8("😀"), U'😀');
}

}  // namespace
}  // namespace nestor
