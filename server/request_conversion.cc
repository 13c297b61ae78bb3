#include "server/request_conversion.h"

#include <cmath>
#include <cstdint>

#include "absl/random/random.h"
#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

constexpr int kStopStringsMax = 16;
constexpr size_t kStopStringBytesMax = 256;
constexpr size_t kRequestIdBytesMax = 128;
constexpr int kTopLogprobsMax = 20;
constexpr int kMessagesMax = 4096;

// A number in a range; NaN is in none.
struct Range {
  double least;
  double most;
  std::string_view words;
  bool open_least = false;  // least itself is not in it
  bool open_most = false;
};

absl::Status CheckRange(std::string_view field, double value, const Range& range) {
  const bool above = range.open_least ? value > range.least : value >= range.least;
  const bool below = range.open_most ? value < range.most : value <= range.most;
  return above && below ? absl::OkStatus()
                        : InvalidField(field, StrCat("expected ", range.words, ", found ", value));
}

absl::StatusOr<OrderedJson> ReadJsonObject(std::string_view field, const std::string& text) {
  OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return InvalidField(field, StrCat("expected a JSON object, found '", text.substr(0, 80), "'"));
}

absl::StatusOr<std::string> RoleName(std::string_view field, v1::ChatRole role) {
  switch (role) {
    case v1::CHAT_ROLE_SYSTEM:
      return std::string("system");
    case v1::CHAT_ROLE_USER:
      return std::string("user");
    case v1::CHAT_ROLE_ASSISTANT:
      return std::string("assistant");
    case v1::CHAT_ROLE_TOOL:
      return std::string("tool");
    default:
      return InvalidField(field, StrCat("expected a role, found ", static_cast<int>(role)));
  }
}

absl::StatusOr<ChatMessage> ReadMessage(const v1::ChatMessage& proto, const std::string& path) {
  ChatMessage message;
  NESTOR_ASSIGN_OR_RETURN(message.role, RoleName(path + ".role", proto.role()));
  message.content = proto.content();
  const bool is_assistant = proto.role() == v1::CHAT_ROLE_ASSISTANT;
  if (proto.has_reasoning_content()) {
    if (!is_assistant) return InvalidField(path + ".reasoning_content", "expected for an assistant only");
    message.reasoning_content = proto.reasoning_content();
  }
  if (proto.tool_calls_size() > 0 && !is_assistant) {
    return InvalidField(path + ".tool_calls", "expected for an assistant only");
  }
  for (int i = 0; i < proto.tool_calls_size(); ++i) {
    const std::string call_path = StrCat(path, ".tool_calls[", i, "]");
    const v1::ToolCall& call = proto.tool_calls(i);
    if (call.name().empty()) return InvalidField(call_path + ".name", "expected a name, found nothing");
    NESTOR_ASSIGN_OR_RETURN(OrderedJson arguments,
                            ReadJsonObject(call_path + ".arguments_json", call.arguments_json()));
    message.tool_calls.push_back({call.name(), std::move(arguments)});
  }
  return message;
}

absl::StatusOr<PromptSource> ReadChat(const v1::Chat& proto) {
  if (proto.messages().empty() || proto.messages_size() > kMessagesMax) {
    return InvalidField("chat.messages",
                        StrCat("expected 1 to ", kMessagesMax, " messages, found ", proto.messages_size()));
  }
  ChatPrompt chat;
  for (int i = 0; i < proto.messages_size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(ChatMessage message,
                            ReadMessage(proto.messages(i), StrCat("chat.messages[", i, "]")));
    chat.messages.push_back(std::move(message));
  }
  for (int i = 0; i < proto.tools_json_size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(OrderedJson tool,
                            ReadJsonObject(StrCat("chat.tools_json[", i, "]"), proto.tools_json(i)));
    chat.tools.push_back(std::move(tool));
  }
  if (proto.has_truncate_history_thinking())
    chat.truncate_history_thinking = proto.truncate_history_thinking();
  return PromptSource(std::move(chat));
}

// A bound that is set must be positive: 0 would mean that nothing may run.
absl::StatusOr<std::optional<int64_t>> ReadBound(bool is_set, int64_t value, const std::string& field) {
  if (!is_set) return std::optional<int64_t>();
  if (value < 1) return InvalidField(field, StrCat("expected 1 or more, found ", value));
  return std::optional<int64_t>(value);
}

absl::StatusOr<Budget> ReadBudget(const v1::Budget& proto, const std::string& path) {
  if (proto.has_latency()) {
    return WithReason(
        WithField(absl::UnimplementedError(StrCat(path, ".latency: latency budgets are not served yet")),
                  path + ".latency"),
        "LATENCY_BUDGET_UNSUPPORTED");
  }
  Budget budget;
  NESTOR_ASSIGN_OR_RETURN(budget.max_total_parameters,
                          ReadBound(proto.has_max_total_parameters(), proto.max_total_parameters(),
                                    path + ".max_total_parameters"));
  NESTOR_ASSIGN_OR_RETURN(budget.max_active_parameters,
                          ReadBound(proto.has_max_active_parameters(), proto.max_active_parameters(),
                                    path + ".max_active_parameters"));
  NESTOR_ASSIGN_OR_RETURN(
      budget.max_memory_bytes,
      ReadBound(proto.has_max_memory_bytes(), proto.max_memory_bytes(), path + ".max_memory_bytes"));
  return budget;
}

absl::StatusOr<std::optional<Handoff>> ReadHandoff(v1::Handoff handoff) {
  switch (handoff) {
    case v1::HANDOFF_UNSPECIFIED:
      return std::optional<Handoff>();
    case v1::HANDOFF_RECOMPUTE:
      return std::optional<Handoff>(Handoff::kRecompute);
    case v1::HANDOFF_TRANSPLANT:
      return std::optional<Handoff>(Handoff::kTransplant);
    default:
      return InvalidField("handoff", StrCat("expected a known value, found ", static_cast<int>(handoff)));
  }
}

absl::Status ReadLogitBias(const v1::Sampling& proto, int vocab_size, SamplingParameters& parameters) {
  for (const auto& [token, bias] : proto.logit_bias()) {
    if (token < 0 || token >= vocab_size) {
      return InvalidField("sampling.logit_bias",
                          StrCat("expected token ids from 0 to ", vocab_size - 1, ", found ", token));
    }
    NESTOR_RETURN_IF_ERROR(CheckRange("sampling.logit_bias", bias, {-100, 100, "-100 to 100"}));
    parameters.logit_bias.push_back({token, bias});
  }
  return absl::OkStatus();
}

SamplingParameters DefaultSampling(const ModelConfig& config) {
  SamplingParameters parameters;
  if (!config.do_sample) return parameters;
  parameters.temperature = config.temperature.value_or(1);
  parameters.top_p = config.top_p.value_or(1);
  parameters.top_k = config.top_k.value_or(0);
  return parameters;
}

absl::StatusOr<SamplingParameters> ReadSampling(const v1::Sampling& proto, const ModelConfig& config) {
  SamplingParameters parameters = DefaultSampling(config);
  const auto read = [](bool is_set, float value, std::string_view field, const Range& range, float& to) {
    if (is_set) to = value;
    return is_set ? CheckRange(field, value, range) : absl::OkStatus();
  };
  NESTOR_RETURN_IF_ERROR(read(proto.has_temperature(), proto.temperature(), "sampling.temperature",
                              {0, 100, "0 to 100"}, parameters.temperature));
  NESTOR_RETURN_IF_ERROR(read(proto.has_top_p(), proto.top_p(), "sampling.top_p",
                              {0, 1, "above 0 to 1", /*open_least=*/true}, parameters.top_p));
  NESTOR_RETURN_IF_ERROR(read(proto.has_min_p(), proto.min_p(), "sampling.min_p",
                              {0, 1, "0 to below 1", /*open_least=*/false, /*open_most=*/true},
                              parameters.min_p));
  NESTOR_RETURN_IF_ERROR(read(proto.has_repetition_penalty(), proto.repetition_penalty(),
                              "sampling.repetition_penalty", {0, 100, "above 0 to 100", /*open_least=*/true},
                              parameters.repetition_penalty));
  NESTOR_RETURN_IF_ERROR(read(proto.has_presence_penalty(), proto.presence_penalty(),
                              "sampling.presence_penalty", {-2, 2, "-2 to 2"}, parameters.presence_penalty));
  NESTOR_RETURN_IF_ERROR(read(proto.has_frequency_penalty(), proto.frequency_penalty(),
                              "sampling.frequency_penalty", {-2, 2, "-2 to 2"},
                              parameters.frequency_penalty));
  if (proto.has_top_k()) {
    if (proto.top_k() < 0)
      return InvalidField("sampling.top_k", StrCat("expected 0 or more, found ", proto.top_k()));
    parameters.top_k = proto.top_k();
  }
  NESTOR_RETURN_IF_ERROR(ReadLogitBias(proto, config.vocab_size, parameters));
  parameters.seed = proto.has_seed() ? proto.seed() : absl::Uniform<uint64_t>(absl::BitGen());
  return parameters;
}

absl::Status ReadStopStrings(const v1::Generation& proto, GenerationRequest& request) {
  if (proto.stop_strings_size() > kStopStringsMax) {
    return InvalidField("stop_strings",
                        StrCat("expected at most ", kStopStringsMax, ", found ", proto.stop_strings_size()));
  }
  for (int i = 0; i < proto.stop_strings_size(); ++i) {
    const std::string& stop = proto.stop_strings(i);
    if (stop.empty() || stop.size() > kStopStringBytesMax) {
      return InvalidField(StrCat("stop_strings[", i, "]"),
                          StrCat("expected 1 to ", kStopStringBytesMax, " bytes, found ", stop.size()));
    }
    request.stop_strings.push_back(stop);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PromptSource> ReadPrompt(const v1::Generation& generation) {
  switch (generation.prompt_case()) {
    case v1::Generation::kText:
      if (generation.text().empty()) return InvalidField("text", "expected text, found nothing");
      return PromptSource(generation.text());
    case v1::Generation::kTokenIds: {
      const auto& ids = generation.token_ids().ids();
      if (ids.empty()) return InvalidField("token_ids.ids", "expected at least one token, found none");
      return PromptSource(std::vector<int32_t>(ids.begin(), ids.end()));
    }
    case v1::Generation::kChat:
      return ReadChat(generation.chat());
    case v1::Generation::PROMPT_NOT_SET:
      break;
  }
  return InvalidField("prompt", "expected one of text, token_ids, chat, found none");
}

absl::StatusOr<PlanRequest> ReadPlanRequest(const v1::Generation& generation) {
  PlanRequest request;
  const v1::ThinkingOptions& thinking = generation.thinking();
  NESTOR_ASSIGN_OR_RETURN(request.budget, ReadBudget(generation.budget(), "budget"));
  NESTOR_ASSIGN_OR_RETURN(request.thinking.budget, ReadBudget(thinking.budget(), "thinking.budget"));
  NESTOR_ASSIGN_OR_RETURN(request.answer.budget, ReadBudget(generation.answer().budget(), "answer.budget"));
  if (thinking.has_submodel()) request.thinking.submodel = thinking.submodel();
  if (generation.answer().has_submodel()) request.answer.submodel = generation.answer().submodel();
  if (thinking.has_max_thinking_tokens()) request.max_thinking_tokens = thinking.max_thinking_tokens();
  if (generation.has_max_output_tokens()) request.max_output_tokens = generation.max_output_tokens();
  NESTOR_ASSIGN_OR_RETURN(request.handoff, ReadHandoff(generation.handoff()));
  if (!v1::BudgetPolicy_IsValid(generation.budget_policy())) {
    return InvalidField("budget_policy",
                        StrCat("expected a known value, found ", generation.budget_policy()));
  }
  request.best_effort = generation.budget_policy() == v1::BUDGET_POLICY_BEST_EFFORT;
  return request;
}

absl::StatusOr<GenerationRequest> ReadGenerationRequest(const v1::Generation& generation,
                                                        const ModelConfig& config) {
  GenerationRequest request;
  NESTOR_ASSIGN_OR_RETURN(request.sampling, ReadSampling(generation.sampling(), config));
  NESTOR_RETURN_IF_ERROR(ReadStopStrings(generation, request));
  request.ignore_eos = generation.ignore_eos();
  request.priority = generation.priority();
  if (generation.has_top_logprobs()) {
    request.top_logprobs = generation.top_logprobs();
    NESTOR_RETURN_IF_ERROR(CheckRange("top_logprobs", request.top_logprobs, {0, kTopLogprobsMax, "0 to 20"}));
  }
  request.request_id = generation.request_id();
  if (request.request_id.size() > kRequestIdBytesMax) {
    return InvalidField("request_id", StrCat("expected at most ", kRequestIdBytesMax, " bytes, found ",
                                             request.request_id.size()));
  }
  if (request.request_id.empty()) {
    request.request_id = StrCat("req-", absl::Hex(absl::Uniform<uint64_t>(absl::BitGen()), absl::kZeroPad16));
  }
  return request;
}

std::optional<bool> ReadThinkingEnabled(const v1::Generation& generation) {
  if (!generation.thinking().has_enabled()) return std::nullopt;
  return generation.thinking().enabled();
}

}  // namespace nestor
