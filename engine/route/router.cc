#include "engine/route/router.h"

#include <algorithm>
#include <string_view>

#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

// A phase's answer: the submodel and why.
struct Choice {
  int submodel = 0;
  bool budget_missed = false;
  std::string reason;
};

// The words of one phase in messages and field paths.
struct PhaseWords {
  std::string_view field;  // of the request's message for the phase
  std::string_view verb;
};
constexpr PhaseWords kThinkingWords = {"thinking", "thinks"};
constexpr PhaseWords kAnswerWords = {"answer", "answers"};

int64_t MemoryBytes(const SubmodelFacts& submodel, int64_t tokens) {
  return submodel.weight_bytes + submodel.state_bytes + submodel.kv_bytes_per_token * tokens;
}

// "needs 2473280 total parameters of 2000000"; empty where the submodel fits.
std::string Excess(const SubmodelFacts& submodel, const Budget& budget, int64_t tokens) {
  const auto excess = [](int64_t need, const std::optional<int64_t>& bound, std::string_view unit) {
    return bound && need > *bound ? StrCat("needs ", need, " ", unit, " of ", *bound) : std::string();
  };
  std::string found = excess(submodel.total_parameters, budget.max_total_parameters, "total parameters");
  if (found.empty())
    found = excess(submodel.active_parameters, budget.max_active_parameters, "active parameters");
  if (found.empty())
    found = excess(MemoryBytes(submodel, tokens), budget.max_memory_bytes, "bytes of memory");
  return found;
}

// Why the submodel does not fit both the request's and the phase's budget; empty where it does.
std::string Excess(const SubmodelFacts& submodel, const PlanRequest& request, const PhaseRequest& phase,
                   int64_t tokens) {
  std::string found = Excess(submodel, request.budget, tokens);
  return found.empty() ? Excess(submodel, phase.budget, tokens) : found;
}

bool IsBounded(const Budget& budget) {
  return budget.max_total_parameters || budget.max_active_parameters || budget.max_memory_bytes;
}

// Submodels from the largest to the smallest; equal sizes in the model's order.
std::vector<int> LargestFirst(const ModelFacts& model) {
  std::vector<int> order(model.submodels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return model.submodels[a].total_parameters > model.submodels[b].total_parameters;
  });
  return order;
}

absl::StatusOr<int> FindSubmodel(const ModelFacts& model, const std::string& name,
                                 std::string_view phase_field) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < model.submodels.size(); ++i) {
    if (model.submodels[i].name == name) return static_cast<int>(i);
    names.push_back(model.submodels[i].name);
  }
  std::string known;
  for (const std::string_view known_name : names) StrAppend(&known, known.empty() ? "" : ", ", known_name);
  return WithReason(InvalidField(StrCat(phase_field, ".submodel"),
                                 StrCat("expected one of ", known, ", found '", name, "'")),
                    "SUBMODEL_UNKNOWN");
}

absl::Status BudgetTooSmall(const PhaseWords& words, const SubmodelFacts& submodel, std::string_view excess,
                            bool named) {
  return WithReason(
      absl::FailedPreconditionError(StrCat(words.field, ": no submodel fits the budget: ", submodel.name,
                                           named ? ", named by the request, " : ", the smallest, ", excess)),
      "BUDGET_TOO_SMALL");
}

absl::StatusOr<Choice> ChooseNamed(const PlanRequest& request, const PhaseRequest& phase,
                                   const PhaseWords& words, const ModelFacts& model, int64_t tokens) {
  NESTOR_ASSIGN_OR_RETURN(const int index, FindSubmodel(model, *phase.submodel, words.field));
  const SubmodelFacts& submodel = model.submodels[index];
  const std::string excess = Excess(submodel, request, phase, tokens);
  if (!excess.empty() && !request.best_effort) return BudgetTooSmall(words, submodel, excess, true);
  std::string reason = StrCat(submodel.name, " ", words.verb, ": named by the request");
  if (!excess.empty()) StrAppend(&reason, ", best effort: ", excess);
  return Choice{index, !excess.empty(), std::move(reason)};
}

absl::StatusOr<Choice> ChooseLargest(const PlanRequest& request, const PhaseRequest& phase,
                                     const PhaseWords& words, const ModelFacts& model, int64_t tokens) {
  std::string larger;  // why the next larger one was not taken
  const std::vector<int> order = LargestFirst(model);
  for (const int index : order) {
    const SubmodelFacts& submodel = model.submodels[index];
    const std::string excess = Excess(submodel, request, phase, tokens);
    if (!excess.empty()) {
      larger = StrCat(submodel.name, " ", excess);
      continue;
    }
    const bool bounded = IsBounded(request.budget) || IsBounded(phase.budget);
    std::string reason = StrCat(submodel.name, " ", words.verb, ": ",
                                bounded ? "the largest that fits" : "the largest, no budget given");
    if (!larger.empty()) StrAppend(&reason, " (", larger, ")");
    return Choice{index, false, std::move(reason)};
  }
  const SubmodelFacts& smallest = model.submodels[order.back()];
  const std::string excess = Excess(smallest, request, phase, tokens);
  if (!request.best_effort) return BudgetTooSmall(words, smallest, excess, false);
  return Choice{
      order.back(), true,
      StrCat(smallest.name, " ", words.verb, ": best effort, nothing fits: ", smallest.name, " ", excess)};
}

absl::StatusOr<Choice> Choose(const PlanRequest& request, const PhaseRequest& phase, const PhaseWords& words,
                              const ModelFacts& model, int64_t tokens) {
  return phase.submodel ? ChooseNamed(request, phase, words, model, tokens)
                        : ChooseLargest(request, phase, words, model, tokens);
}

// The output limit, the request's or the default, within the context.
absl::StatusOr<int> OutputLimit(const PlanRequest& request, const ModelFacts& model) {
  const int forced = request.think ? model.close_tokens : 0;
  const int room = model.max_context_tokens - request.prompt_tokens - forced;
  if (room < 1) {
    return InvalidField("prompt",
                        StrCat("expected at most ", model.max_context_tokens - forced - 1,
                               " tokens, so that one can be generated, found ", request.prompt_tokens));
  }
  if (!request.max_output_tokens) return std::min(room, model.default_max_output_tokens);
  if (*request.max_output_tokens < 1 || *request.max_output_tokens > room) {
    return InvalidField("max_output_tokens",
                        StrCat("expected 1 to ", room, " (context of ", model.max_context_tokens, " tokens, ",
                               request.prompt_tokens, " in the prompt), found ", *request.max_output_tokens));
  }
  return *request.max_output_tokens;
}

absl::StatusOr<Handoff> ChooseHandoff(const PlanRequest& request, const ModelFacts& model, int from, int to) {
  const Handoff handoff = request.handoff.value_or(model.default_handoff);
  if (from == to || handoff == Handoff::kRecompute) return Handoff::kRecompute;
  const std::string& obstacle = model.transplant_obstacles[from][to];
  if (obstacle.empty()) return handoff;
  if (!request.handoff) return Handoff::kRecompute;
  return WithReason(
      absl::FailedPreconditionError(StrCat("handoff: TRANSPLANT from ", model.submodels[from].name, " to ",
                                           model.submodels[to].name, " is not possible: ", obstacle)),
      "TRANSPLANT_IMPOSSIBLE");
}

// What is asked of a phase that does not take place would be ignored.
absl::Status RefuseThinkingFields(const PlanRequest& request) {
  const auto refusal = [](std::string_view field) {
    return InvalidField(field, "expected nothing, as the request does not think");
  };
  if (request.thinking.submodel) return refusal("thinking.submodel");
  if (request.max_thinking_tokens) return refusal("thinking.max_thinking_tokens");
  if (IsBounded(request.thinking.budget)) return refusal("thinking.budget");
  return absl::OkStatus();
}

absl::Status CheckThinking(const PlanRequest& request, const ModelFacts& model) {
  if (!request.think) return RefuseThinkingFields(request);
  if (!model.supports_thinking) {
    return InvalidField("thinking.enabled", "expected false: this model has no thinking markers");
  }
  if (request.max_thinking_tokens && *request.max_thinking_tokens < 0) {
    return InvalidField("thinking.max_thinking_tokens",
                        StrCat("expected 0 or more, found ", *request.max_thinking_tokens));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> Route(const PlanRequest& request, const ModelFacts& model) {
  NESTOR_RETURN_IF_ERROR(CheckThinking(request, model));
  Plan plan;
  plan.think = request.think;
  plan.max_thinking_tokens = request.max_thinking_tokens;
  NESTOR_ASSIGN_OR_RETURN(plan.max_output_tokens, OutputLimit(request, model));

  const int64_t tokens =
      int64_t{request.prompt_tokens} + plan.max_output_tokens + (request.think ? model.close_tokens : 0);
  NESTOR_ASSIGN_OR_RETURN(const Choice answer, Choose(request, request.answer, kAnswerWords, model, tokens));
  Choice thinking = answer;
  plan.reason = answer.reason;
  if (request.think) {
    NESTOR_ASSIGN_OR_RETURN(thinking, Choose(request, request.thinking, kThinkingWords, model, tokens));
    plan.reason = StrCat(thinking.reason, "; ", answer.reason);
  }
  plan.thinking_submodel = thinking.submodel;
  plan.answer_submodel = answer.submodel;
  plan.budget_missed = thinking.budget_missed || answer.budget_missed;
  plan.memory_bytes = std::max(MemoryBytes(model.submodels[thinking.submodel], tokens),
                               MemoryBytes(model.submodels[answer.submodel], tokens));
  NESTOR_ASSIGN_OR_RETURN(plan.handoff, ChooseHandoff(request, model, thinking.submodel, answer.submodel));
  return plan;
}

}  // namespace nestor
