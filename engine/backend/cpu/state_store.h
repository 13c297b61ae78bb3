// The state of all sequences in main memory: recurrent state by slot, keys and values by page.
#ifndef NESTOR_ENGINE_BACKEND_CPU_STATE_STORE_H_
#define NESTOR_ENGINE_BACKEND_CPU_STATE_STORE_H_

#include <cstdint>
#include <vector>

#include "engine/backend/cpu/zeroed_array.h"
#include "engine/checkpoint/model_config.h"

namespace nestor {

// Sized once for the full model; a submodel with fewer Mamba heads uses the front of each slot's arrays.
class StateStore {
 public:
  StateStore(const ModelConfig& config, int slots, int pages);

  float* conv(int slot, int layer) const {
    return recurrent_.data() + slot * slot_floats_ + conv_offset_[layer];
  }
  float* ssm(int slot, int layer) const {
    return recurrent_.data() + slot * slot_floats_ + ssm_offset_[layer];
  }

  // (kPageTokens, KV heads · head_dim) of one attention layer.
  float* keys(int page, int layer) const { return kv_.data() + page * page_floats_ + key_offset_[layer]; }
  float* values(int page, int layer) const { return keys(page, layer) + kv_floats_; }

  void ResetSlot(int slot);

 private:
  std::vector<int64_t> conv_offset_;  // by layer, into a slot
  std::vector<int64_t> ssm_offset_;
  std::vector<int64_t> key_offset_;  // by layer, into a page
  int64_t slot_floats_ = 0;
  int64_t page_floats_ = 0;
  int64_t kv_floats_ = 0;  // keys of one layer in one page
  ZeroedArray recurrent_;  // (slots, slot_floats_)
  ZeroedArray kv_;         // (pages, page_floats_)
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_BACKEND_CPU_STATE_STORE_H_
