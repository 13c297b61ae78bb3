// The byte-level alphabet of GPT-2: every byte as one printable character, so that a vocabulary is readable
// text.
#ifndef NESTOR_ENGINE_TEXT_BYTE_LEVEL_H_
#define NESTOR_ENGINE_TEXT_BYTE_LEVEL_H_

#include <optional>
#include <string>
#include <string_view>

namespace nestor {

// The bytes that valid UTF-8 text in the alphabet stands for; nullopt where a character is not in the
// alphabet.
std::optional<std::string> BytesOfAlphabet(std::string_view text);

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_BYTE_LEVEL_H_
