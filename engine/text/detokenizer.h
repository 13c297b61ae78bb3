// Tokens to text as they come.
#ifndef NESTOR_ENGINE_TEXT_DETOKENIZER_H_
#define NESTOR_ENGINE_TEXT_DETOKENIZER_H_

#include <cstdint>
#include <string>

#include "engine/text/tokenizer.h"

namespace nestor {

// One generation's tokens, on one thread. What Push and Flush return, put together, equals Tokenizer::Decode
// of all tokens; every piece is valid UTF-8 by itself.
class Detokenizer {
 public:
  // The tokenizer must outlive the detokenizer.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that became complete; a character whose bytes are still missing is held back.
  std::string Push(int32_t id);
  // At the end: U+FFFD for a character that was never completed.
  std::string Flush();

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_;
  std::string held_;  // at most three bytes: the beginning of a character
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_DETOKENIZER_H_
