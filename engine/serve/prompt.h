// Turns what a request says into the tokens the model reads.
#ifndef NESTOR_ENGINE_SERVE_PROMPT_H_
#define NESTOR_ENGINE_SERVE_PROMPT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/elastic_descriptor.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace nestor {

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  std::vector<OrderedJson> tools;
  bool truncate_history_thinking = true;
};

// Text (special tokens in it count as such), token ids, or a conversation.
using PromptSource = std::variant<std::string, std::vector<int32_t>, ChatPrompt>;

struct Prompt {
  std::vector<int32_t> tokens;
  bool think = false;  // the prompt ends inside thinking
};

// `enabled`: what the request says of thinking. Absent: on for conversations where the model thinks; for text
// and tokens, on exactly where they leave thinking open. Where it is on and the prompt does not open it, the
// opening marker is appended. `markers`: absent for a model that does not think. INVALID_ARGUMENT with the
// field ("prompt", "thinking.enabled") where the prompt cannot be read or contradicts `enabled`.
absl::StatusOr<Prompt> BuildPrompt(const PromptSource& source, std::optional<bool> enabled,
                                   const std::optional<ThinkingMarkers>& markers, const Tokenizer& tokenizer);

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_PROMPT_H_
