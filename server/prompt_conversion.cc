#include "server/prompt_conversion.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/base/str_cat.h"
#include "engine/text/json_nesting.h"

namespace nestor {
namespace {

constexpr int kMessagesMax = 4096;
constexpr int kToolsMax = 256;

void CheckLength(const std::string& path, const std::string& text, const PromptLimits& limits,
                 Violations& violations) {
  if (text.size() <= limits.text_bytes_max) return;
  violations.Add(path, StrCat("expected at most ", limits.text_bytes_max,
                              " bytes, more than which no context holds, found ", text.size()));
}

OrderedJson ReadJsonObject(const std::string& path, const std::string& text, Violations& violations) {
  OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    violations.Add(path, StrCat("expected a JSON object, found '", Excerpt(text), "'"));
  } else if (!IsNestedWithin(json)) {
    violations.Add(path, StrCat("expected at most ", kJsonDepthMax, " levels of JSON, found more"));
  }
  return json;
}

std::string RoleName(const std::string& path, v1::ChatRole role, Violations& violations) {
  switch (role) {
    case v1::CHAT_ROLE_SYSTEM:
      return "system";
    case v1::CHAT_ROLE_USER:
      return "user";
    case v1::CHAT_ROLE_ASSISTANT:
      return "assistant";
    case v1::CHAT_ROLE_TOOL:
      return "tool";
    default:
      violations.Add(path, StrCat("expected a role, found ", static_cast<int>(role)));
      return "";
  }
}

std::vector<ToolCall> ReadToolCalls(const v1::ChatMessage& proto, const std::string& path,
                                    Violations& violations) {
  std::vector<ToolCall> calls;
  if (proto.tool_calls_size() > kToolsMax) {
    violations.Add(path, StrCat("expected at most ", kToolsMax, ", found ", proto.tool_calls_size()));
    return calls;
  }
  for (int i = 0; i < proto.tool_calls_size(); ++i) {
    const v1::ToolCall& call = proto.tool_calls(i);
    const std::string call_path = StrCat(path, "[", i, "]");
    if (call.name().empty()) violations.Add(call_path + ".name", "expected a name, found nothing");
    calls.push_back(
        {call.name(), ReadJsonObject(call_path + ".arguments_json", call.arguments_json(), violations)});
  }
  return calls;
}

ChatMessage ReadMessage(const v1::ChatMessage& proto, const std::string& path, const PromptLimits& limits,
                        Violations& violations) {
  ChatMessage message;
  message.role = RoleName(path + ".role", proto.role(), violations);
  message.content = proto.content();
  if (proto.role() == v1::CHAT_ROLE_ASSISTANT) {  // may be long: old thinking is left out
    message.tool_calls = ReadToolCalls(proto, path + ".tool_calls", violations);
    if (proto.has_reasoning_content()) message.reasoning_content = proto.reasoning_content();
    return message;
  }
  CheckLength(path + ".content", proto.content(), limits, violations);
  constexpr std::string_view kOnlyAssistant = "expected for an assistant only, found for another role";
  if (proto.has_reasoning_content()) violations.Add(path + ".reasoning_content", kOnlyAssistant);
  if (proto.tool_calls_size() > 0) violations.Add(path + ".tool_calls", kOnlyAssistant);
  return message;
}

PromptSource ReadChat(const v1::Chat& proto, const PromptLimits& limits, Violations& violations) {
  ChatPrompt chat;
  if (proto.messages().empty() || proto.messages_size() > kMessagesMax) {
    violations.Add("chat.messages",
                   StrCat("expected 1 to ", kMessagesMax, " messages, found ", proto.messages_size()));
    return chat;
  }
  for (int i = 0; i < proto.messages_size(); ++i) {
    chat.messages.push_back(
        ReadMessage(proto.messages(i), StrCat("chat.messages[", i, "]"), limits, violations));
  }
  if (proto.tools_json_size() > kToolsMax) {
    violations.Add("chat.tools_json",
                   StrCat("expected at most ", kToolsMax, ", found ", proto.tools_json_size()));
    return chat;
  }
  for (int i = 0; i < proto.tools_json_size(); ++i) {
    chat.tools.push_back(ReadJsonObject(StrCat("chat.tools_json[", i, "]"), proto.tools_json(i), violations));
  }
  if (proto.has_truncate_history_thinking()) {
    chat.truncate_history_thinking = proto.truncate_history_thinking();
  }
  return chat;
}

PromptSource ReadTokens(const v1::TokenIds& proto, const PromptLimits& limits, Violations& violations) {
  if (proto.ids().empty()) {
    violations.Add("token_ids.ids", "expected at least one token, found none");
  }
  for (int i = 0; i < proto.ids_size(); ++i) {
    if (proto.ids(i) >= 0 && proto.ids(i) < limits.vocab_size) continue;
    violations.Add(StrCat("token_ids.ids[", i, "]"),
                   StrCat("expected a token id from 0 to ", limits.vocab_size - 1, ", found ", proto.ids(i)));
    break;  // where one is wrong, often all are
  }
  return std::vector<int32_t>(proto.ids().begin(), proto.ids().end());
}

}  // namespace

PromptSource ReadPrompt(const v1::Generation& generation, const PromptLimits& limits,
                        Violations& violations) {
  switch (generation.prompt_case()) {
    case v1::Generation::kText:
      if (generation.text().empty()) violations.Add("text", "expected text, found nothing");
      CheckLength("text", generation.text(), limits, violations);
      return generation.text();
    case v1::Generation::kTokenIds:
      return ReadTokens(generation.token_ids(), limits, violations);
    case v1::Generation::kChat:
      return ReadChat(generation.chat(), limits, violations);
    case v1::Generation::PROMPT_NOT_SET:
      break;
  }
  violations.Add("prompt", "expected one of text, token_ids, chat, found none");
  return std::string();
}

std::string_view PromptField(const v1::Generation& generation) {
  switch (generation.prompt_case()) {
    case v1::Generation::kText:
      return "text";
    case v1::Generation::kTokenIds:
      return "token_ids.ids";
    case v1::Generation::kChat:
      return "chat";
    case v1::Generation::PROMPT_NOT_SET:
      break;
  }
  return "prompt";
}

}  // namespace nestor
