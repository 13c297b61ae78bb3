// From the prompt of a nestor.v1 request to what the engine renders and tokenizes.
#ifndef NESTOR_SERVER_PROMPT_CONVERSION_H_
#define NESTOR_SERVER_PROMPT_CONVERSION_H_

#include <cstddef>
#include <string_view>

#include "engine/serve/prompt.h"
#include "nestor/v1/generation.pb.h"
#include "server/violations.h"

namespace nestor {

// What no prompt may exceed, known before it is tokenized.
struct PromptLimits {
  int vocab_size = 0;
  // Of a text, or of what one message says. No token is longer than the longest, so more bytes cannot fit
  // the context: no need to tokenize megabytes to find out.
  size_t text_bytes_max = 0;
};

// Meaningful where nothing is added to `violations`.
PromptSource ReadPrompt(const v1::Generation& generation, const PromptLimits& limits, Violations& violations);

// The path of the field that holds the prompt.
std::string_view PromptField(const v1::Generation& generation);

}  // namespace nestor

#endif  // NESTOR_SERVER_PROMPT_CONVERSION_H_
