#include <algorithm>
#include <cmath>

#include "engine/backend/cpu/cpu_operations.h"
#include "engine/backend/cpu/dot.h"

namespace nestor {

float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

void CpuOperations::CausalConv(int layer, const MambaLayer& mamba, RowSet rows, RowBuffer projected) {
  const int taps = config_.conv_kernel;
  for (const SequenceRows& sequence : rows.sequences) {
    const HeadSlice& heads = mamba.heads[sequence.submodel];
    const int inner = config_.mamba_inner(heads.kept);
    const int parent_inner = config_.mamba_inner(heads.total);
    const int channels = config_.conv_channels(heads.kept);
    float* const state = state_.conv(sequence.slot, layer);  // (taps - 1, channels), oldest first
    for (int row = sequence.begin; row < sequence.end; ++row) {
      float* const x = projected.row(row) + inner;  // [x | B | C]
      for (int channel = 0; channel < channels; ++channel) {
        const int parent = channel < inner
                               ? heads.parent(channel / config_.mamba_head_dim) * config_.mamba_head_dim +
                                     channel % config_.mamba_head_dim
                               : parent_inner + channel - inner;
        const float* const weight = mamba.conv_weight.data() + int64_t{parent} * taps;
        const float current = x[channel];
        float sum = mamba.conv_bias[parent];
        for (int tap = 0; tap < taps - 1; ++tap) sum += weight[tap] * state[tap * channels + channel];
        sum += weight[taps - 1] * current;
        for (int tap = 0; tap < taps - 2; ++tap) {
          state[tap * channels + channel] = state[(tap + 1) * channels + channel];
        }
        state[(taps - 2) * channels + channel] =
            current;  // the state holds inputs from before the convolution
        x[channel] = Silu(sum);
      }
    }
  }
}

void CpuOperations::SelectiveScan(int layer, const MambaLayer& mamba, RowSet rows, RowBuffer projected,
                                  RowBuffer y) {
  const int head_dim = config_.mamba_head_dim;
  const int state_size = config_.ssm_state_size;
  for (const SequenceRows& sequence : rows.sequences) {
    const HeadSlice& heads = mamba.heads[sequence.submodel];
    const int inner = config_.mamba_inner(heads.kept);
    float* const ssm = state_.ssm(sequence.slot, layer);  // (heads, head_dim, state)
    for (int row = sequence.begin; row < sequence.end; ++row) {
      const float* const x = projected.row(row) + inner;
      const float* const b = x + inner;                               // (groups, state)
      const float* const c = b + config_.n_groups * state_size;       // (groups, state)
      const float* const dt_raw = c + config_.n_groups * state_size;  // (heads)
      for (int head = 0; head < heads.kept; ++head) {
        const int parent = heads.parent(head);
        const float* const b_head = b + heads.group(head) * state_size;
        const float* const c_head = c + heads.group(head) * state_size;
        const float dt = std::clamp(Softplus(dt_raw[head] + mamba.dt_bias[parent]),
                                    config_.time_step_limit_min, config_.time_step_limit_max);
        const float decay = std::exp(dt * mamba.a[parent]);
        for (int p = 0; p < head_dim; ++p) {
          float* const state = ssm + (int64_t{head} * head_dim + p) * state_size;
          const float x_p = x[head * head_dim + p];
          for (int n = 0; n < state_size; ++n) state[n] = decay * state[n] + dt * x_p * b_head[n];
          y.row(row)[head * head_dim + p] = Dot(state, c_head, state_size) + mamba.d[parent] * x_p;
        }
      }
    }
  }
}

}  // namespace nestor
