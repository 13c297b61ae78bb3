// Which layers a model has, as config.json writes it in one of three spellings.
#ifndef NESTOR_ENGINE_CHECKPOINT_LAYER_LIST_H_
#define NESTOR_ENGINE_CHECKPOINT_LAYER_LIST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/json_reader.h"
#include "engine/checkpoint/model_config.h"

namespace nestor {

// Reads `hybrid_override_pattern` (letters M, E, *, -), `layers_block_type` (mamba, moe, attention, mlp) or
// `layer_types` (linear_attention, moe, full_attention, mlp). Where several are there they must agree, and
// `num_hidden_layers`, where it is there, must be their length. The layers have their kinds, no widths yet.
absl::StatusOr<std::vector<LayerShape>> ReadLayerList(JsonReader& reader);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_LAYER_LIST_H_
