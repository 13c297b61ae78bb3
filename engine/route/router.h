// The budget router: which submodel thinks, which answers, how state passes between them, and what that
// costs. A pure function of the request and the submodels' facts.
#ifndef NESTOR_ENGINE_ROUTE_ROUTER_H_
#define NESTOR_ENGINE_ROUTE_ROUTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/handoff.h"

namespace nestor {

// What the router knows of one submodel.
struct SubmodelFacts {
  std::string name;
  int64_t total_parameters = 0;
  int64_t active_parameters = 0;
  int64_t weight_bytes = 0;
  int64_t state_bytes = 0;
  int64_t kv_bytes_per_token = 0;
};

// What the router knows of the model.
struct ModelFacts {
  std::vector<SubmodelFacts> submodels;
  // transplant_obstacles[from][to]: why state cannot pass as it is ("layer 2: 6 Mamba heads against 4");
  // empty: it can.
  std::vector<std::vector<std::string>> transplant_obstacles;
  Handoff default_handoff = Handoff::kRecompute;
  bool supports_thinking = false;
  int max_context_tokens = 0;         // prompt + generated + forced; what positions and the KV cache allow
  int default_max_output_tokens = 0;  // for requests that name no limit
  int close_tokens = 0;               // tokens that may be forced at a thinking limit
};

// Upper bounds; absent: unbounded. All present bounds must hold.
struct Budget {
  std::optional<int64_t> max_total_parameters;
  std::optional<int64_t> max_active_parameters;
  // What the submodel and this request would need alone: weights in the stored format + recurrent state + KV
  // for the prompt and the token limits.
  std::optional<int64_t> max_memory_bytes;
};

// What a request asks of one phase.
struct PhaseRequest {
  std::optional<std::string> submodel;  // replaces the choice by budget; the budgets still have to hold
  Budget budget;                        // besides the whole request's budget
};

struct PlanRequest {
  Budget budget;                           // of the whole request: holds in both phases
  bool think = false;                      // whether there is a thinking phase
  PhaseRequest thinking;                   // empty where there is none
  std::optional<int> max_thinking_tokens;  // the same; absent: limited by max_output_tokens only
  PhaseRequest answer;
  std::optional<int> max_output_tokens;  // thinking and answer together, forced tokens excluded
  std::optional<Handoff> handoff;
  bool best_effort = false;  // nothing fits: run the smallest instead of refusing
  int prompt_tokens = 0;
};

struct Plan {
  int thinking_submodel = 0;  // equals answer_submodel where the request does not think
  int answer_submodel = 0;
  bool think = false;
  std::optional<int> max_thinking_tokens;
  int max_output_tokens = 0;
  Handoff handoff = Handoff::kRecompute;  // kRecompute where both phases run one submodel
  int64_t memory_bytes = 0;               // the larger of the two phases, as max_memory_bytes counts it
  bool budget_missed = false;             // true only under best_effort: nothing fitted
  std::string reason;  // for people: "0.5m thinks: named by the request; 2.5m answers: largest of 3"
};

// Picks for each phase the largest submodel (by total parameters) within all budgets.
//   INVALID_ARGUMENT     an unknown submodel, a limit out of range, thinking on a model without it, limits
//   for
//                        thinking where there is none (with the field's path in nestor.v1 terms)
//   FAILED_PRECONDITION  reason BUDGET_TOO_SMALL: no submodel fits; says what the smallest would need
//                        reason TRANSPLANT_IMPOSSIBLE: state shapes differ; says where
absl::StatusOr<Plan> Route(const PlanRequest& request, const ModelFacts& model);

}  // namespace nestor

#endif  // NESTOR_ENGINE_ROUTE_ROUTER_H_
