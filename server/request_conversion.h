// From nestor.v1 requests to what the engine takes, every field checked.
#ifndef NESTOR_SERVER_REQUEST_CONVERSION_H_
#define NESTOR_SERVER_REQUEST_CONVERSION_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/route/router.h"
#include "engine/serve/prompt.h"
#include "engine/serve/request.h"
#include "nestor/v1/generation.pb.h"
#include "server/prompt_conversion.h"

namespace nestor {

// A request in the engine's terms.
struct RequestParts {
  PromptSource prompt;
  std::optional<bool> thinking_enabled;
  PlanRequest plan;           // `prompt_tokens` and `think` are left for the caller to fill in
  GenerationRequest request;  // without prompt, plan and deadline
};

// Defaults come from the model's generation config; a missing seed or request id is drawn at random.
//   INVALID_ARGUMENT  with the path of every field at fault, relative to Generation ("sampling.top_p")
//   UNIMPLEMENTED     reason LATENCY_BUDGET_UNSUPPORTED, with the field
absl::StatusOr<RequestParts> ReadRequest(const v1::Generation& generation, const ModelConfig& config,
                                         const PromptLimits& limits);

}  // namespace nestor

#endif  // NESTOR_SERVER_REQUEST_CONVERSION_H_
