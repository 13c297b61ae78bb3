// The text of one phase of one sequence, as far as it is certain.
#ifndef NESTOR_ENGINE_SERVE_OUTPUT_TEXT_H_
#define NESTOR_ENGINE_SERVE_OUTPUT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/text/detokenizer.h"
#include "engine/text/stop_matcher.h"
#include "engine/text/tokenizer.h"

namespace nestor {

// Tokens in, text out: whole UTF-8 characters, special tokens left out, cut before the first stop string.
// What Push and Flush return, put together, is the phase's text.
class OutputText {
 public:
  OutputText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings);

  std::string Push(int32_t token);
  // The rest, at the end of the phase. Nothing after a match.
  std::string Flush();

  // The stop string that ended the text; empty: none so far.
  const std::string& matched_stop() const { return stop_matcher_.matched(); }

 private:
  Detokenizer detokenizer_;
  StopMatcher stop_matcher_;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_OUTPUT_TEXT_H_
