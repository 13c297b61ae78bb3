#include "engine/text/utf8.h"

#include <cstdint>

namespace nestor {
namespace {

// What may follow a leading byte: the number of continuation bytes and the range of the first of them.
struct Lead {
  int continuations;
  uint8_t least;
  uint8_t most;
};

Lead LeadOf(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Unit NextUtf8(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (at(0) < 0x80) return {Utf8Unit::Kind::kCharacter, 1};
  const Lead lead = LeadOf(at(0));
  if (lead.continuations == 0) return {Utf8Unit::Kind::kInvalid, 1};
  for (size_t i = 1; i <= static_cast<size_t>(lead.continuations); ++i) {
    if (i == bytes.size()) return {Utf8Unit::Kind::kIncomplete, i};
    const uint8_t least = i == 1 ? lead.least : 0x80, most = i == 1 ? lead.most : 0xBF;
    if (at(i) < least || at(i) > most) return {Utf8Unit::Kind::kInvalid, i};
  }
  return {Utf8Unit::Kind::kCharacter, static_cast<size_t>(lead.continuations) + 1};
}

std::optional<size_t> FirstInvalidUtf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Unit unit = NextUtf8(bytes.substr(i));
    if (unit.kind != Utf8Unit::Kind::kCharacter) return i;
    i += unit.length;
  }
  return std::nullopt;
}

size_t CompleteUtf8Length(std::string_view bytes) {
  size_t length = 0;
  while (length < bytes.size()) {
    const Utf8Unit unit = NextUtf8(bytes.substr(length));
    if (unit.kind == Utf8Unit::Kind::kIncomplete) break;
    length += unit.length;
  }
  return length;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Unit unit = NextUtf8(bytes.substr(i));
    text += unit.kind == Utf8Unit::Kind::kCharacter ? bytes.substr(i, unit.length) : kReplacementCharacter;
    i += unit.length;
  }
  return text;
}

char32_t DecodeUtf8(std::string_view text) {
  const size_t length = NextUtf8(text).length;
  constexpr uint8_t kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = static_cast<uint8_t>(text[0]) & kLeadBits[length];
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3F);
  return code;
}

}  // namespace nestor
