// What a submodel weighs: parameters, stored bytes, and the state a sequence carries. Exact, from the tensor
// schema.
#ifndef NESTOR_ENGINE_CHECKPOINT_FOOTPRINT_H_
#define NESTOR_ENGINE_CHECKPOINT_FOOTPRINT_H_

#include <cstdint>

#include "engine/checkpoint/checkpoint.h"

namespace nestor {

struct ParameterCount {
  int64_t total = 0;
  int64_t active = 0;  // per token: num_experts_per_tok of the routed experts; embedding and head counted
};

ParameterCount CountParameters(const ModelConfig& config, const SubmodelShape& submodel);

struct Footprint {
  int64_t total_parameters = 0;
  int64_t active_parameters = 0;
  int64_t weight_bytes = 0;  // total parameters in their stored dtypes
  int64_t state_bytes = 0;   // recurrent state of one sequence (conv + SSM, float32), constant in length
  int64_t kv_bytes_per_token = 0;  // float32 keys and values of all active attention layers
};

Footprint FootprintOf(const Checkpoint& checkpoint, const SubmodelShape& submodel);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_FOOTPRINT_H_
