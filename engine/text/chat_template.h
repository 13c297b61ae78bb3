// The chat layout of the shipped model (ChatML turns, thinking before the answer, tool calls in XML), in
// code. engine/text/chat_template.jinja says the same as a template; other layouts are not supported.
#ifndef NESTOR_ENGINE_TEXT_CHAT_TEMPLATE_H_
#define NESTOR_ENGINE_TEXT_CHAT_TEMPLATE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/text/tokenizer.h"
#include "nlohmann/json.hpp"

namespace nestor {

// Whether the chat template of a checkpoint is the one that RenderChat follows: `chat_template.jinja`, or in
// its absence `chat_template` in `tokenizer_config.json`, as in transformers.
//   UNIMPLEMENTED     it is another one, or there is none
//   INVALID_ARGUMENT  tokenizer_config.json is not a JSON object; and ReadFile's errors
absl::Status CheckChatTemplate(const std::string& directory);

using OrderedJson = nlohmann::ordered_json;  // keys are rendered in the order they were given

struct ToolCall {
  std::string name;
  OrderedJson arguments;  // an object
};

struct ChatMessage {
  std::string role;  // system, user, assistant or tool
  std::string content;
  std::optional<std::string> reasoning_content;  // assistant: what it thought
  std::vector<ToolCall> tool_calls;              // assistant
};

struct ChatOptions {
  bool thinking = true;                   // the answer to come is to think first
  bool truncate_history_thinking = true;  // leaves out what was thought before the last user turn
  bool add_generation_prompt = true;      // ends in the beginning of an answer
};

// A rendered chat: the layout's own text, and in between what users wrote. Encode both in one go,
// `tokenizer.Encode(chat.text, chat.plain)`: the pieces of the tokenizer go across the borders, so encoding
// the parts one by one would give other tokens. `<|im_end|>` written by a user becomes ordinary tokens, as do
// `<think>` and `</think>`, except in an assistant's content, which the layout takes apart there.
struct ChatText {
  std::string text;
  std::vector<TextRange> plain;  // what users wrote: never special tokens, whatever it looks like
};

// `tools`: function definitions, each an object as in OpenAI's API. INVALID_ARGUMENT with the path for an
// unknown role and for tools or arguments that are not of the expected form.
absl::StatusOr<ChatText> RenderChat(absl::Span<const ChatMessage> messages,
                                    absl::Span<const OrderedJson> tools, const ChatOptions& options);

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_CHAT_TEMPLATE_H_
