#include <cmath>

#include "engine/backend/cpu/cpu_operations.h"
#include "engine/backend/cpu/dot.h"

namespace nestor {

float Silu(float x) { return x / (1.0f + std::exp(-x)); }

void CpuOperations::RmsNorm(absl::Span<const float> weight, float eps, absl::Span<const int64_t> widths,
                            RowSet rows, RowBuffer in, RowBuffer out) {
  for (const RowGroup& group : rows.groups) {
    const int64_t width = widths[group.submodel];
    for (int row = group.begin; row < group.end; ++row) {
      const float* const x = in.row(row);
      float* const y = out.row(row);
      const float scale = 1.0f / std::sqrt(Dot(x, x, width) / static_cast<float>(width) + eps);
      for (int64_t i = 0; i < width; ++i) y[i] = weight[i] * (x[i] * scale);
    }
  }
}

// The gate comes before the norm, and each of the n_groups groups has its own mean square.
void CpuOperations::GatedNorm(const MambaLayer& mamba, RowSet rows, RowBuffer projected, RowBuffer y) {
  for (const RowGroup& group : rows.groups) {
    const HeadSlice& heads = mamba.heads[group.submodel];
    const int head_dim = config_.mamba_head_dim;
    const int heads_per_group = heads.kept / heads.groups;
    const int64_t group_width = int64_t{heads_per_group} * head_dim;
    for (int row = group.begin; row < group.end; ++row) {
      const float* const z = projected.row(row);
      for (int g = 0; g < heads.groups; ++g) {
        float* const values = y.row(row) + g * group_width;
        const float* const gate = z + g * group_width;
        for (int64_t i = 0; i < group_width; ++i) values[i] *= Silu(gate[i]);
        const float mean_square = Dot(values, values, group_width) / static_cast<float>(group_width);
        const float scale = 1.0f / std::sqrt(mean_square + config_.norm_eps);
        // The kept heads of a group are its first, so their norm weights are a prefix of the group's.
        const float* const weight =
            mamba.gated_norm.data() + int64_t{heads.parent(g * heads_per_group)} * head_dim;
        for (int64_t i = 0; i < group_width; ++i) values[i] = weight[i] * (values[i] * scale);
      }
    }
  }
}

}  // namespace nestor
