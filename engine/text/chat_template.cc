#include "engine/text/chat_template.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/text/chat_template_jinja.h"
#include "engine/text/json_nesting.h"
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

absl::Status Unexpected(std::string_view path, std::string_view expected, const OrderedJson& found) {
  constexpr size_t kExcerptBytes = 80;  // of ASCII, so no character is cut
  std::string excerpt = "deeply nested JSON";
  if (IsNestedWithin(found)) {
    excerpt = found.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace)
                  .substr(0, kExcerptBytes);
  }
  return absl::InvalidArgumentError(StrCat(path, ": expected ", expected, ", found ", excerpt));
}

// A type is a word or a list of words.
absl::StatusOr<std::string> TypeWords(const std::string& path, const OrderedJson& type) {
  if (type.is_string()) return type.get<std::string>();
  if (!type.is_array()) return Unexpected(path, "a string or a list of strings", type);
  std::string words;
  for (size_t i = 0; i < type.size(); ++i) {
    if (!type[i].is_string()) return Unexpected(path, "a string or a list of strings", type);
    StrAppend(&words, i > 0 ? "|" : "", type[i].get_ref<const std::string&>());
  }
  return words;
}

absl::Status WriteDescription(ChatWriter& writer, const std::string& path, const OrderedJson& owner) {
  if (!owner.contains("description")) return absl::OkStatus();
  const OrderedJson& description = owner["description"];
  if (description.is_structured()) return Unexpected(path + ".description", "a string", description);
  WriteTag(writer, "description", PythonStrip(PythonString(description)));
  return absl::OkStatus();
}

absl::Status WriteParameter(ChatWriter& writer, const std::string& path, const std::string& name,
                            const OrderedJson& parameter) {
  if (!parameter.is_object()) return Unexpected(path, "an object", parameter);
  writer.Layout("\n<parameter>");
  WriteTag(writer, "name", name);
  if (parameter.contains("type")) {
    NESTOR_ASSIGN_OR_RETURN(const std::string words, TypeWords(path + ".type", parameter["type"]));
    WriteTag(writer, "type", words);
  }
  NESTOR_RETURN_IF_ERROR(WriteDescription(writer, path, parameter));
  if (parameter.contains("enum")) WriteTag(writer, "enum", PythonJson(parameter["enum"]));
  for (const auto& [key, value] : parameter.items()) {
    if (key != "type" && key != "description" && key != "enum") WriteTag(writer, key, TagValue(value));
  }
  writer.Layout("\n</parameter>");
  return absl::OkStatus();
}

absl::Status WriteParameters(ChatWriter& writer, const std::string& path, const OrderedJson& parameters) {
  if (!parameters.is_object() || !parameters.contains("properties")) return absl::OkStatus();
  const OrderedJson& properties = parameters["properties"];
  if (!properties.is_object()) return Unexpected(path + ".properties", "an object", properties);
  for (const auto& [name, parameter] : properties.items()) {
    NESTOR_RETURN_IF_ERROR(WriteParameter(writer, StrCat(path, ".properties.", name), name, parameter));
  }
  if (parameters.contains("required")) WriteTag(writer, "required", PythonJson(parameters["required"]));
  return absl::OkStatus();
}

absl::Status WriteTool(ChatWriter& writer, const std::string& path, const OrderedJson& tool) {
  if (!IsNestedWithin(tool)) return Unexpected(path, StrCat("at most ", kJsonDepthMax, " levels"), tool);
  const OrderedJson& function = Member(tool, "function").is_object() ? Member(tool, "function") : tool;
  const OrderedJson& name = Member(function, "name");
  if (!name.is_string()) return Unexpected(path, "a tool with a name", tool);
  writer.Layout("\n<function>");
  WriteTag(writer, "name", name.get_ref<const std::string&>());
  NESTOR_RETURN_IF_ERROR(WriteDescription(writer, path, function));
  writer.Layout("\n<parameters>");
  NESTOR_RETURN_IF_ERROR(WriteParameters(writer, path + ".parameters", Member(function, "parameters")));
  writer.Layout("\n</parameters>\n</function>");
  return absl::OkStatus();
}

absl::Status WriteSystem(ChatWriter& writer, std::string_view system, absl::Span<const OrderedJson> tools) {
  writer.Layout("<|im_start|>system\n");
  writer.User(system);
  if (!tools.empty()) {
    writer.Layout(system.empty() ? "" : "\n\n");
    writer.Layout("# Tools\n\nFunctions that may be called:\n<tools>");
    for (size_t i = 0; i < tools.size(); ++i) {
      NESTOR_RETURN_IF_ERROR(WriteTool(writer, StrCat("tools[", i, "]"), tools[i]));
    }
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

absl::Status WriteToolCall(ChatWriter& writer, const std::string& path, const ToolCall& call) {
  if (!call.arguments.is_object() || !IsNestedWithin(call.arguments)) {
    return Unexpected(path + ".arguments", StrCat("an object of at most ", kJsonDepthMax, " levels"),
                      call.arguments);
  }
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
  return absl::OkStatus();
}

absl::Status WriteAssistant(ChatWriter& writer, const std::string& path, const ChatMessage& message,
                            bool with_thinking) {
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
  for (size_t i = 0; i < message.tool_calls.size(); ++i) {
    NESTOR_RETURN_IF_ERROR(
        WriteToolCall(writer, StrCat(path, ".tool_calls[", i, "]"), message.tool_calls[i]));
  }
  writer.Layout("<|im_end|>\n");
  return absl::OkStatus();
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

// The template itself and where it was found; nullopt where the checkpoint has none.
struct FoundTemplate {
  std::string path;
  std::string text;
};

absl::StatusOr<std::optional<FoundTemplate>> FindChatTemplate(const std::string& directory) {
  const std::string file = directory + "/chat_template.jinja";
  if (FileExists(file)) {
    NESTOR_ASSIGN_OR_RETURN(std::string text, ReadFile(file));
    return FoundTemplate{file, std::move(text)};
  }
  const std::string config_file = directory + "/tokenizer_config.json";
  if (!FileExists(config_file)) return std::nullopt;
  NESTOR_ASSIGN_OR_RETURN(const Json config, ReadJsonFile(config_file));
  if (!config.is_object()) {
    return absl::InvalidArgumentError(
        StrCat(config_file, ": expected an object, found ", config.type_name()));
  }
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  const bool is_text = found->is_string();  // a list of named templates is another layout
  return FoundTemplate{config_file + ": key 'chat_template'", is_text ? found->get<std::string>() : ""};
}

}  // namespace

absl::Status CheckChatTemplate(const std::string& directory) {
  NESTOR_ASSIGN_OR_RETURN(const std::optional<FoundTemplate> found, FindChatTemplate(directory));
  if (!found) {
    return absl::UnimplementedError(
        StrCat(directory, ": expected a chat template (chat_template.jinja), found none"));
  }
  const auto trimmed = [](std::string_view text) { return absl::StripTrailingAsciiWhitespace(ToAbsl(text)); };
  if (trimmed(found->text) == trimmed(kChatTemplateJinja)) return absl::OkStatus();
  return absl::UnimplementedError(
      StrCat(found->path, ": expected the template of models/abacus, found another; only that is supported"));
}

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
    const std::string path = StrCat("messages[", i, "]");
    if (message.role == "user" || message.role == "system") {
      WritePlainTurn(writer, message);
    } else if (message.role == "assistant") {
      const bool with_thinking = !options.truncate_history_thinking || static_cast<int>(i) > last_user;
      NESTOR_RETURN_IF_ERROR(WriteAssistant(writer, path, message, with_thinking));
    } else if (message.role == "tool") {
      WriteToolResult(writer, message, i == first || !is_tool(i - 1), !is_tool(i + 1));
    } else {
      return absl::InvalidArgumentError(
          StrCat(path, ".role: expected system, user, assistant or tool, found '", message.role, "'"));
    }
  }
  if (options.add_generation_prompt) {
    writer.Layout("<|im_start|>assistant\n");
    writer.Layout(options.thinking ? "<think>\n" : "<think></think>");
  }
  return writer.Take();
}

}  // namespace nestor
