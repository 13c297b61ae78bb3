#include "engine/backend/cpu/state_store.h"

#include <algorithm>

#include "engine/model/step.h"

namespace nestor {
namespace {

int64_t ConvFloats(const ModelConfig& config, const LayerShape& layer) {
  return int64_t{config.conv_kernel - 1} * config.conv_channels(layer.mamba_heads);
}

int64_t SsmFloats(const ModelConfig& config, const LayerShape& layer) {
  return int64_t{config.mamba_inner(layer.mamba_heads)} * config.ssm_state_size;
}

int64_t SlotFloats(const ModelConfig& config) {
  int64_t floats = 0;
  for (const LayerShape& layer : config.full.layers) {
    if (layer.kind == LayerKind::kMamba) floats += ConvFloats(config, layer) + SsmFloats(config, layer);
  }
  return floats;
}

int64_t PageFloats(const ModelConfig& config) {
  const auto attention_layers =
      std::count_if(config.full.layers.begin(), config.full.layers.end(),
                    [](const LayerShape& layer) { return layer.kind == LayerKind::kAttention; });
  return attention_layers * 2 * kPageTokens * config.kv_width();
}

}  // namespace

StateStore::StateStore(const ModelConfig& config, int slots, int pages)
    : conv_offset_(config.num_layers()),
      ssm_offset_(config.num_layers()),
      key_offset_(config.num_layers()),
      slot_floats_(SlotFloats(config)),
      page_floats_(PageFloats(config)),
      kv_floats_(int64_t{kPageTokens} * config.kv_width()),
      recurrent_(slots * slot_floats_),
      kv_(pages * page_floats_) {
  int64_t slot_offset = 0, page_offset = 0;
  for (int index = 0; index < config.num_layers(); ++index) {
    const LayerShape& layer = config.full.layers[index];
    if (layer.kind == LayerKind::kMamba) {
      conv_offset_[index] = slot_offset;
      ssm_offset_[index] = slot_offset + ConvFloats(config, layer);
      slot_offset = ssm_offset_[index] + SsmFloats(config, layer);
    } else if (layer.kind == LayerKind::kAttention) {
      key_offset_[index] = page_offset;
      page_offset += 2 * kv_floats_;
    }
  }
}

void StateStore::ResetSlot(int slot) {
  float* const state = recurrent_.data() + slot * slot_floats_;
  std::fill(state, state + slot_floats_, 0.0f);
}

}  // namespace nestor
