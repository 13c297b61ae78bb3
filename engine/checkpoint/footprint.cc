#include "engine/checkpoint/footprint.h"

namespace nestor {
namespace {

int64_t ElementCount(const TensorSpec& tensor, const ModelConfig& config, const SubmodelShape& submodel) {
  int64_t count = 1;
  for (const int64_t dimension : ShapeOf(tensor, config, submodel)) count *= dimension;
  return count;
}

// Float32 elements of state: of one sequence, and of one token.
struct StateElements {
  int64_t recurrent = 0;
  int64_t kv_per_token = 0;
};

StateElements CountState(const ModelConfig& config, const SubmodelShape& submodel) {
  StateElements elements;
  for (const LayerShape& layer : submodel.layers) {
    if (!layer.active) continue;
    if (layer.kind == LayerKind::kMamba) {
      elements.recurrent += int64_t{config.conv_kernel - 1} * config.conv_channels(layer.mamba_heads) +
                            int64_t{config.mamba_inner(layer.mamba_heads)} * config.ssm_state_size;
    } else if (layer.kind == LayerKind::kAttention) {
      elements.kv_per_token += 2 * config.kv_width();
    }
  }
  return elements;
}

}  // namespace

ParameterCount CountParameters(const ModelConfig& config, const SubmodelShape& submodel) {
  ParameterCount parameters;
  for (const TensorSpec& tensor : TensorSchema(config)) {
    if (!Uses(submodel, tensor)) continue;
    const int64_t count = ElementCount(tensor, config, submodel);
    parameters.total += count;
    // All experts are alike, so the first num_experts_per_tok stand for those a token uses.
    if (tensor.expert < config.num_experts_per_tok) parameters.active += count;
  }
  return parameters;
}

Footprint FootprintOf(const Checkpoint& checkpoint, const SubmodelShape& submodel) {
  const ModelConfig& config = checkpoint.config();
  const ParameterCount parameters = CountParameters(config, submodel);
  const StateElements state = CountState(config, submodel);
  Footprint footprint;
  footprint.total_parameters = parameters.total;
  footprint.active_parameters = parameters.active;
  for (const TensorSpec& tensor : TensorSchema(config)) {
    if (!Uses(submodel, tensor)) continue;
    footprint.weight_bytes +=
        ElementCount(tensor, config, submodel) * ByteSize(checkpoint.tensor(tensor.name).dtype);
  }
  footprint.state_bytes = state.recurrent * static_cast<int64_t>(sizeof(float));
  footprint.kv_bytes_per_token = state.kv_per_token * static_cast<int64_t>(sizeof(float));
  return footprint;
}

}  // namespace nestor
