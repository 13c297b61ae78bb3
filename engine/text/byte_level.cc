#include "engine/text/byte_level.h"

#include <array>
#include <cstdint>

namespace nestor {
namespace {

constexpr size_t kAlphabetEnd = 256 + 68;  // 188 bytes stand for themselves, the other 68 follow U+00FF

// code point -> byte, -1 for none
std::array<int16_t, kAlphabetEnd> MakeAlphabet() {
  std::array<int16_t, kAlphabetEnd> byte_of{};
  byte_of.fill(-1);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    byte_of[printable ? byte : next++] = static_cast<int16_t>(byte);
  }
  return byte_of;
}

}  // namespace

std::optional<std::string> BytesOfAlphabet(std::string_view text) {
  static const std::array<int16_t, kAlphabetEnd> kByteOf = MakeAlphabet();
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    size_t code = static_cast<uint8_t>(text[i]);
    if (code >= 0xE0) return std::nullopt;  // the alphabet has characters of one and two bytes only
    if (code >= 0x80) code = (code & 0x1F) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3F);
    if (code >= kAlphabetEnd || kByteOf[code] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOf[code]);
  }
  return bytes;
}

}  // namespace nestor
