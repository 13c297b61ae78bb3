// From nestor.v1 requests to what the engine takes, every field checked.
#ifndef NESTOR_SERVER_REQUEST_CONVERSION_H_
#define NESTOR_SERVER_REQUEST_CONVERSION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/route/router.h"
#include "engine/serve/prompt.h"
#include "engine/serve/request.h"
#include "nestor/v1/generation.pb.h"

namespace nestor {

// INVALID_ARGUMENT with the field's path within Generation ("sampling.top_p"); UNIMPLEMENTED with reason
// LATENCY_BUDGET_UNSUPPORTED for a latency budget.

// The prompt, its text checked to be there.
absl::StatusOr<PromptSource> ReadPrompt(const v1::Generation& generation);

// All the router asks; `prompt_tokens` and `think` are left for the caller to fill in.
absl::StatusOr<PlanRequest> ReadPlanRequest(const v1::Generation& generation);

// Everything else. Defaults come from the model's generation config; a missing seed is drawn at random.
absl::StatusOr<GenerationRequest> ReadGenerationRequest(const v1::Generation& generation,
                                                        const ModelConfig& config);

// What the request says of thinking.
std::optional<bool> ReadThinkingEnabled(const v1::Generation& generation);

}  // namespace nestor

#endif  // NESTOR_SERVER_REQUEST_CONVERSION_H_
