// UTF-8 as the Unicode standard defines it (table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF.
#ifndef NESTOR_ENGINE_TEXT_UTF8_H_
#define NESTOR_ENGINE_TEXT_UTF8_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace nestor {

// What stands at the beginning of some bytes.
struct Utf8Unit {
  enum class Kind {
    kCharacter,   // one character of `length` bytes
    kInvalid,     // `length` bytes that no continuation can make valid: one U+FFFD in their place
    kIncomplete,  // the bytes end inside a character
  };
  Kind kind;
  size_t length;
};

// `bytes` must not be empty.
Utf8Unit NextUtf8(std::string_view bytes);

// Offset of the first byte that does not belong to a valid character; nullopt where all do.
std::optional<size_t> FirstInvalidUtf8(std::string_view bytes);

// Length of `bytes` without a character at their end of which bytes are still missing.
size_t CompleteUtf8Length(std::string_view bytes);

// Valid text with U+FFFD in place of each maximal invalid part.
std::string ReplaceInvalidUtf8(std::string_view bytes);

// The code point at the beginning of valid, non-empty text.
char32_t DecodeUtf8(std::string_view text);

// U+FFFD
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_UTF8_H_
