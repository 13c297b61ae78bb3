#include "server/request_conversion.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/random/random.h"
#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "server/violations.h"

namespace nestor {
namespace {

constexpr int kStopStringsMax = 16;
constexpr size_t kStopStringBytesMax = 256;
constexpr size_t kNameBytesMax = 128;  // of a request, a model, a submodel
constexpr int kTopLogprobsMax = 20;
constexpr int kLogitBiasMax = 1024;

// A number in a range; NaN is in none.
struct Range {
  double least;
  double most;
  std::string_view words;
  bool open_least = false;  // least itself is not in it
  bool open_most = false;
};

void CheckRange(std::string_view field, double value, const Range& range, Violations& violations) {
  const bool above = range.open_least ? value > range.least : value >= range.least;
  const bool below = range.open_most ? value < range.most : value <= range.most;
  if (above && below) return;
  // Whole numbers with all their digits, others with no more than a float has.
  const bool whole = value == std::trunc(value) && std::abs(value) < 1e15;
  const std::string found = whole ? StrCat(static_cast<int64_t>(value)) : StrCat(value);
  violations.Add(field, StrCat("expected ", range.words, ", found ", found));
}

void CheckName(std::string_view field, const std::string& name, Violations& violations) {
  if (name.size() <= kNameBytesMax) return;
  violations.Add(field, StrCat("expected at most ", kNameBytesMax, " bytes, found ", name.size()));
}

// A bound that is set must be positive: 0 would mean that nothing may run.
std::optional<int64_t> ReadBound(bool is_set, int64_t value, const std::string& field,
                                 Violations& violations) {
  if (!is_set) return std::nullopt;
  if (value < 1) violations.Add(field, StrCat("expected 1 or more, found ", value));
  return value;
}

Budget ReadBudget(const v1::Budget& proto, const std::string& path, Violations& violations) {
  Budget budget;
  budget.max_total_parameters = ReadBound(proto.has_max_total_parameters(), proto.max_total_parameters(),
                                          path + ".max_total_parameters", violations);
  budget.max_active_parameters = ReadBound(proto.has_max_active_parameters(), proto.max_active_parameters(),
                                           path + ".max_active_parameters", violations);
  budget.max_memory_bytes = ReadBound(proto.has_max_memory_bytes(), proto.max_memory_bytes(),
                                      path + ".max_memory_bytes", violations);
  return budget;
}

// No budget is left out of account: one that is not served yet ends the request.
absl::Status RefuseLatencyBudgets(const v1::Generation& generation) {
  const std::pair<const v1::Budget&, std::string_view> budgets[] = {
      {generation.budget(), "budget.latency"},
      {generation.thinking().budget(), "thinking.budget.latency"},
      {generation.answer().budget(), "answer.budget.latency"}};
  for (const auto& [budget, field] : budgets) {
    if (!budget.has_latency()) continue;
    const absl::Status status =
        absl::UnimplementedError(StrCat(field, ": latency budgets are not served yet"));
    return WithReason(WithField(status, field), "LATENCY_BUDGET_UNSUPPORTED");
  }
  return absl::OkStatus();
}

std::optional<Handoff> ReadHandoff(v1::Handoff handoff, Violations& violations) {
  switch (handoff) {
    case v1::HANDOFF_UNSPECIFIED:
      return std::nullopt;
    case v1::HANDOFF_RECOMPUTE:
      return Handoff::kRecompute;
    case v1::HANDOFF_TRANSPLANT:
      return Handoff::kTransplant;
    default:
      violations.Add("handoff", StrCat("expected a known value, found ", static_cast<int>(handoff)));
      return std::nullopt;
  }
}

PlanRequest ReadPlanRequest(const v1::Generation& generation, Violations& violations) {
  PlanRequest request;
  const v1::ThinkingOptions& thinking = generation.thinking();
  const v1::AnswerOptions& answer = generation.answer();
  request.budget = ReadBudget(generation.budget(), "budget", violations);
  request.thinking.budget = ReadBudget(thinking.budget(), "thinking.budget", violations);
  request.answer.budget = ReadBudget(answer.budget(), "answer.budget", violations);
  CheckName("thinking.submodel", thinking.submodel(), violations);
  CheckName("answer.submodel", answer.submodel(), violations);
  if (thinking.has_submodel()) request.thinking.submodel = thinking.submodel();
  if (answer.has_submodel()) request.answer.submodel = answer.submodel();
  if (thinking.has_max_thinking_tokens()) {
    request.max_thinking_tokens = thinking.max_thinking_tokens();
    CheckRange("thinking.max_thinking_tokens", thinking.max_thinking_tokens(), {0, INT32_MAX, "0 or more"},
               violations);
  }
  if (generation.has_max_output_tokens()) {
    request.max_output_tokens = generation.max_output_tokens();
    CheckRange("max_output_tokens", generation.max_output_tokens(), {1, INT32_MAX, "1 or more"}, violations);
  }
  request.handoff = ReadHandoff(generation.handoff(), violations);
  if (!v1::BudgetPolicy_IsValid(generation.budget_policy())) {
    violations.Add("budget_policy", StrCat("expected a known value, found ", generation.budget_policy()));
  }
  request.best_effort = generation.budget_policy() == v1::BUDGET_POLICY_BEST_EFFORT;
  return request;
}

void ReadLogitBias(const v1::Sampling& proto, int vocab_size, SamplingParameters& parameters,
                   Violations& violations) {
  if (proto.logit_bias().size() > kLogitBiasMax) {
    violations.Add("sampling.logit_bias",
                   StrCat("expected at most ", kLogitBiasMax, " tokens, found ", proto.logit_bias().size()));
    return;
  }
  for (const auto& [token, bias] : proto.logit_bias()) {
    if (token < 0 || token >= vocab_size) {
      violations.Add("sampling.logit_bias",
                     StrCat("expected token ids from 0 to ", vocab_size - 1, ", found ", token));
    }
    CheckRange("sampling.logit_bias", bias, {-100, 100, "-100 to 100"}, violations);
    parameters.logit_bias.push_back({token, bias});
  }
}

SamplingParameters DefaultSampling(const ModelConfig& config) {
  SamplingParameters parameters;
  if (!config.do_sample) return parameters;
  parameters.temperature = config.temperature.value_or(1);
  parameters.top_p = config.top_p.value_or(1);
  parameters.top_k = config.top_k.value_or(0);
  return parameters;
}

SamplingParameters ReadSampling(const v1::Sampling& proto, const ModelConfig& config,
                                Violations& violations) {
  SamplingParameters parameters = DefaultSampling(config);
  const auto read = [&](bool is_set, float value, std::string_view field, const Range& range, float& to) {
    if (!is_set) return;
    to = value;
    CheckRange(field, value, range, violations);
  };
  read(proto.has_temperature(), proto.temperature(), "sampling.temperature", {0, 100, "0 to 100"},
       parameters.temperature);
  read(proto.has_top_p(), proto.top_p(), "sampling.top_p", {0, 1, "above 0 to 1", /*open_least=*/true},
       parameters.top_p);
  read(proto.has_min_p(), proto.min_p(), "sampling.min_p",
       {0, 1, "0 to below 1", /*open_least=*/false, /*open_most=*/true}, parameters.min_p);
  read(proto.has_repetition_penalty(), proto.repetition_penalty(), "sampling.repetition_penalty",
       {0.01, 100, "0.01 to 100"}, parameters.repetition_penalty);
  read(proto.has_presence_penalty(), proto.presence_penalty(), "sampling.presence_penalty",
       {-2, 2, "-2 to 2"}, parameters.presence_penalty);
  read(proto.has_frequency_penalty(), proto.frequency_penalty(), "sampling.frequency_penalty",
       {-2, 2, "-2 to 2"}, parameters.frequency_penalty);
  if (proto.has_top_k()) {
    parameters.top_k = proto.top_k();
    CheckRange("sampling.top_k", proto.top_k(), {0, INT32_MAX, "0 or more"}, violations);
  }
  ReadLogitBias(proto, config.vocab_size, parameters, violations);
  parameters.seed = proto.has_seed() ? proto.seed() : absl::Uniform<uint64_t>(absl::BitGen());
  return parameters;
}

void ReadStopStrings(const v1::Generation& proto, GenerationRequest& request, Violations& violations) {
  if (proto.stop_strings_size() > kStopStringsMax) {
    violations.Add("stop_strings",
                   StrCat("expected at most ", kStopStringsMax, ", found ", proto.stop_strings_size()));
    return;
  }
  for (int i = 0; i < proto.stop_strings_size(); ++i) {
    const std::string& stop = proto.stop_strings(i);
    if (stop.empty() || stop.size() > kStopStringBytesMax) {
      violations.Add(StrCat("stop_strings[", i, "]"),
                     StrCat("expected 1 to ", kStopStringBytesMax, " bytes, found ", stop.size()));
    }
    request.stop_strings.push_back(stop);
  }
}

GenerationRequest ReadGenerationRequest(const v1::Generation& generation, const ModelConfig& config,
                                        Violations& violations) {
  GenerationRequest request;
  request.sampling = ReadSampling(generation.sampling(), config, violations);
  ReadStopStrings(generation, request, violations);
  request.ignore_eos = generation.ignore_eos();
  request.priority = generation.priority();
  if (generation.has_top_logprobs()) {
    request.top_logprobs = generation.top_logprobs();
    CheckRange("top_logprobs", request.top_logprobs, {0, kTopLogprobsMax, "0 to 20"}, violations);
  }
  request.request_id = generation.request_id();
  CheckName("request_id", request.request_id, violations);
  if (request.request_id.empty()) {
    request.request_id = StrCat("req-", absl::Hex(absl::Uniform<uint64_t>(absl::BitGen()), absl::kZeroPad16));
  }
  return request;
}

}  // namespace

absl::StatusOr<RequestParts> ReadRequest(const v1::Generation& generation, const ModelConfig& config,
                                         const PromptLimits& limits) {
  Violations violations;
  RequestParts parts;
  parts.prompt = ReadPrompt(generation, limits, violations);
  if (generation.thinking().has_enabled()) parts.thinking_enabled = generation.thinking().enabled();
  parts.plan = ReadPlanRequest(generation, violations);
  parts.request = ReadGenerationRequest(generation, config, violations);
  NESTOR_RETURN_IF_ERROR(violations.ToStatus());
  NESTOR_RETURN_IF_ERROR(RefuseLatencyBudgets(generation));
  return parts;
}

}  // namespace nestor
