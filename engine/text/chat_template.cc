#include "engine/text/chat_template.h"

#include <algorithm>
#include <string_view>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/text/python_text.h"

namespace nestor {
namespace {

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";

// Builds the text and remembers which parts are whose.
class ChatWriter {
 public:
  void Layout(std::string_view text) { chat_.text += text; }
  void User(std::string_view text) {
    if (text.empty()) return;
    chat_.plain.push_back({chat_.text.size(), chat_.text.size() + text.size()});
    chat_.text += text;
  }
  ChatText Take() { return std::move(chat_); }

 private:
  ChatText chat_;
};

const OrderedJson& Member(const OrderedJson& object, const char* key) {
  static const OrderedJson kNothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

// A value inside a tag: strings as they are, the rest as JSON or as Python would print it.
std::string TagValue(const OrderedJson& value) {
  return value.is_structured() ? PythonJson(value) : PythonString(value);
}

void WriteTag(ChatWriter& writer, std::string_view name, std::string_view value) {
  writer.Layout("\n<");
  writer.User(name);
  writer.Layout(">");
  writer.User(value);
  writer.Layout("</");
  writer.User(name);
  writer.Layout(">");
}

// A type is a word or a list of words.
std::string TypeWords(const OrderedJson& type) {
  if (!type.is_array()) return PythonString(type);
  std::string words;
  for (size_t i = 0; i < type.size(); ++i) StrAppend(&words, i > 0 ? "|" : "", PythonString(type[i]));
  return words;
}

void WriteParameter(ChatWriter& writer, const std::string& name, const OrderedJson& parameter) {
  writer.Layout("\n<parameter>");
  WriteTag(writer, "name", name);
  if (parameter.contains("type")) WriteTag(writer, "type", TypeWords(parameter["type"]));
  if (parameter.contains("description")) {
    WriteTag(writer, "description", PythonStrip(PythonString(parameter["description"])));
  }
  if (parameter.contains("enum")) WriteTag(writer, "enum", PythonJson(parameter["enum"]));
  for (const auto& [key, value] : parameter.items()) {
    if (key != "type" && key != "description" && key != "enum") WriteTag(writer, key, TagValue(value));
  }
  writer.Layout("\n</parameter>");
}

absl::Status WriteTool(ChatWriter& writer, const OrderedJson& tool) {
  const OrderedJson& function = Member(tool, "function").is_object() ? Member(tool, "function") : tool;
  if (!Member(function, "name").is_string()) {
    return absl::InvalidArgumentError(
        StrCat("expected a tool with a name, found ", tool.dump().substr(0, 80)));
  }
  writer.Layout("\n<function>");
  WriteTag(writer, "name", Member(function, "name").get<std::string>());
  if (function.contains("description")) {
    WriteTag(writer, "description", PythonStrip(PythonString(function["description"])));
  }
  writer.Layout("\n<parameters>");
  const OrderedJson& parameters = Member(function, "parameters");
  for (const auto& [name, parameter] : Member(parameters, "properties").items()) {
    if (!parameter.is_object()) {
      return absl::InvalidArgumentError(
          StrCat("expected parameter '", name, "' as an object, found ", parameter.dump().substr(0, 80)));
    }
    WriteParameter(writer, name, parameter);
  }
  if (parameters.is_object() && parameters.contains("required")) {
    WriteTag(writer, "required", PythonJson(parameters["required"]));
  }
  writer.Layout("\n</parameters>\n</function>");
  return absl::OkStatus();
}

absl::Status WriteSystem(ChatWriter& writer, std::string_view system, absl::Span<const OrderedJson> tools) {
  writer.Layout("<|im_start|>system\n");
  writer.User(system);
  if (!tools.empty()) {
    writer.Layout(system.empty() ? "" : "\n\n");
    writer.Layout("# Tools\n\nFunctions that may be called:\n<tools>");
    for (const OrderedJson& tool : tools) NESTOR_RETURN_IF_ERROR(WriteTool(writer, tool));
    writer.Layout("\n</tools>");
  }
  writer.Layout("<|im_end|>\n");
  return absl::OkStatus();
}

// An assistant turn taken apart: what was thought and what was said.
struct AssistantTurn {
  std::string thinking;
  std::string answer;
};

// Thinking comes apart from the content or, in older histories, inside it.
AssistantTurn TakeApart(const ChatMessage& message) {
  const std::string content(PythonStrip(message.content));
  if (message.reasoning_content && !message.reasoning_content->empty()) {
    return {std::string(PythonStrip(*message.reasoning_content)), content};
  }
  const size_t close = content.find(kThinkClose);
  if (close == std::string::npos) return {"", content};
  std::string_view before = std::string_view(content).substr(0, close);
  const size_t open = before.rfind(kThinkOpen);
  if (open != std::string_view::npos) before.remove_prefix(open + kThinkOpen.size());
  const size_t last_close = content.rfind(kThinkClose);
  return {std::string(PythonStrip(before)),
          std::string(PythonStrip(std::string_view(content).substr(last_close + kThinkClose.size())))};
}

void WriteToolCall(ChatWriter& writer, const ToolCall& call) {
  writer.Layout("\n<tool_call>\n<function=");
  writer.User(call.name);
  writer.Layout(">\n");
  for (const auto& [key, value] : call.arguments.items()) {
    writer.Layout("<parameter=");
    writer.User(key);
    writer.Layout(">\n");
    writer.User(value.is_string() ? value.get<std::string>() : PythonJson(value));
    writer.Layout("\n</parameter>\n");
  }
  writer.Layout("</function>\n</tool_call>");
}

void WriteAssistant(ChatWriter& writer, const ChatMessage& message, bool with_thinking) {
  const AssistantTurn turn = TakeApart(message);
  writer.Layout("<|im_start|>assistant\n");
  if (with_thinking && !turn.thinking.empty()) {
    writer.Layout("<think>\n");
    writer.User(turn.thinking);
    writer.Layout("\n</think>");
  } else {
    writer.Layout("<think></think>");
  }
  writer.User(turn.answer);
  for (const ToolCall& call : message.tool_calls) WriteToolCall(writer, call);
  writer.Layout("<|im_end|>\n");
}

// Results of one round of calls share a user turn.
void WriteToolResult(ChatWriter& writer, const ChatMessage& message, bool is_first, bool is_last) {
  if (is_first) writer.Layout("<|im_start|>user\n");
  writer.Layout("<tool_response>\n");
  writer.User(message.content);
  writer.Layout("\n</tool_response>\n");
  if (is_last) writer.Layout("<|im_end|>\n");
}

void WritePlainTurn(ChatWriter& writer, const ChatMessage& message) {
  writer.Layout(StrCat("<|im_start|>", message.role, "\n"));
  writer.User(message.content);
  writer.Layout("<|im_end|>\n");
}

// Index of the last user turn; -1 for none.
int LastUserTurn(absl::Span<const ChatMessage> messages) {
  int last = -1;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == "user") last = static_cast<int>(i);
  }
  return last;
}

}  // namespace

absl::StatusOr<ChatText> RenderChat(absl::Span<const ChatMessage> messages,
                                    absl::Span<const OrderedJson> tools, const ChatOptions& options) {
  ChatWriter writer;
  const bool has_system = !messages.empty() && messages[0].role == "system";
  NESTOR_RETURN_IF_ERROR(WriteSystem(writer, has_system ? PythonStrip(messages[0].content) : "", tools));
  const int last_user = LastUserTurn(messages);
  const auto is_tool = [&](size_t i) { return i < messages.size() && messages[i].role == "tool"; };
  const size_t first = has_system ? 1 : 0;
  for (size_t i = first; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == "user" || message.role == "system") {
      WritePlainTurn(writer, message);
    } else if (message.role == "assistant") {
      WriteAssistant(writer, message, !options.truncate_history_thinking || static_cast<int>(i) > last_user);
    } else if (message.role == "tool") {
      WriteToolResult(writer, message, i == first || !is_tool(i - 1), !is_tool(i + 1));
    } else {
      return absl::InvalidArgumentError(
          StrCat("expected the role system, user, assistant or tool, found '", message.role, "'"));
    }
  }
  if (options.add_generation_prompt) {
    writer.Layout("<|im_start|>assistant\n");
    writer.Layout(options.thinking ? "<think>\n" : "<think></think>");
  }
  return writer.Take();
}

}  // namespace nestor
