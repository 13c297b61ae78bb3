#include "engine/serve/prompt.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

// Reads tokens of text that belongs to the prompt.
absl::StatusOr<std::vector<int32_t>> Encode(const Tokenizer& tokenizer, std::string_view text,
                                            absl::Span<const TextRange> plain = {}) {
  absl::StatusOr<std::vector<int32_t>> tokens = tokenizer.Encode(text, plain);
  if (!tokens.ok() && absl::IsInvalidArgument(tokens.status())) {
    return InvalidField("prompt", ToStd(tokens.status().message()));
  }
  return tokens;
}

// The token that by itself opens or closes thinking: a marker without the white space around it.
std::optional<int32_t> MarkerToken(const Tokenizer& tokenizer, const std::string& marker) {
  return tokenizer.TokenId(ToStd(absl::StripAsciiWhitespace(marker)));
}

// Whether the last opening of thinking is not closed again.
bool LeavesThinkingOpen(const std::vector<int32_t>& tokens, const ThinkingMarkers& markers,
                        const Tokenizer& tokenizer) {
  const std::optional<int32_t> open = MarkerToken(tokenizer, markers.open);
  const std::optional<int32_t> close = MarkerToken(tokenizer, markers.close);
  const auto last = std::find_if(tokens.rbegin(), tokens.rend(),
                                 [&](int32_t token) { return token == open || token == close; });
  return last != tokens.rend() && *last == open;
}

absl::StatusOr<Prompt> BuildChat(const ChatPrompt& chat, std::optional<bool> enabled, bool supports_thinking,
                                 const Tokenizer& tokenizer) {
  ChatOptions options;
  options.thinking = enabled.value_or(supports_thinking);
  options.truncate_history_thinking = chat.truncate_history_thinking;
  const absl::StatusOr<ChatText> rendered = RenderChat(chat.messages, chat.tools, options);
  if (!rendered.ok()) return InvalidField("prompt", ToStd(rendered.status().message()));
  NESTOR_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, Encode(tokenizer, rendered->text, rendered->plain));
  return Prompt{std::move(tokens), options.thinking};
}

// Opens thinking where the request wants it and the tokens do not.
absl::StatusOr<Prompt> FinishTokens(std::vector<int32_t> tokens, std::optional<bool> enabled,
                                    const std::optional<ThinkingMarkers>& markers,
                                    const Tokenizer& tokenizer) {
  const bool open = markers && LeavesThinkingOpen(tokens, *markers, tokenizer);
  if (open && enabled == false) {
    return InvalidField("thinking.enabled",
                        "expected true or nothing, as the prompt leaves thinking open, found false");
  }
  if (markers && enabled == true && !open) {
    NESTOR_ASSIGN_OR_RETURN(const std::vector<int32_t> marker, Encode(tokenizer, markers->open));
    tokens.insert(tokens.end(), marker.begin(), marker.end());
  }
  return Prompt{std::move(tokens), open || enabled == true};
}

}  // namespace

absl::StatusOr<Prompt> BuildPrompt(const PromptSource& source, std::optional<bool> enabled,
                                   const std::optional<ThinkingMarkers>& markers,
                                   const Tokenizer& tokenizer) {
  if (const auto* const chat = std::get_if<ChatPrompt>(&source)) {
    return BuildChat(*chat, enabled, markers.has_value(), tokenizer);
  }
  if (const auto* const tokens = std::get_if<std::vector<int32_t>>(&source)) {
    return FinishTokens(*tokens, enabled, markers, tokenizer);
  }
  NESTOR_ASSIGN_OR_RETURN(const std::vector<int32_t> text, Encode(tokenizer, std::get<std::string>(source)));
  std::vector<int32_t> tokens = tokenizer.prefix_tokens();
  tokens.insert(tokens.end(), text.begin(), text.end());
  return FinishTokens(std::move(tokens), enabled, markers, tokenizer);
}

}  // namespace nestor
