// The operations the graph is made of. A backend implements them once; tests/engine/backend holds one test
// body for all backends. Adding a backend: a class that models `Operations` and an Executor around Graph<it>.
#ifndef NESTOR_ENGINE_MODEL_OPERATIONS_H_
#define NESTOR_ENGINE_MODEL_OPERATIONS_H_

#include <concepts>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/model/model.h"
#include "engine/model/step.h"

namespace nestor {

// Activations of a step: row r holds float32 values from data + r·stride on; a submodel uses a prefix of the
// row. The memory belongs to the backend (on a GPU it is device memory; only the backend dereferences it).
struct RowBuffer {
  float* data = nullptr;
  int64_t stride = 0;

  float* row(int64_t index) const { return data + index * stride; }
};

// What each operation computes, for every row of `rows` and in the widths of the row's submodel (float32
// arithmetic; a row's result does not depend on the other rows: every reduction has a fixed order):
//
//   Allocate(rows, width)                  a zeroed buffer that lives as long as the backend
//   Embed(matrix, tokens, widths, rows, out)
//                                          out[r] = matrix[tokens[r]], widths[submodel] columns
//   RmsNorm(weight, eps, widths, rows, in, out)
//                                          out = weight · in / sqrt(mean(in²) + eps)
//   Multiply(linear, rows, in, out)        out = W in
//   MultiplyAdd(linear, rows, in, out)     out += W in
//   Add(widths, rows, in, out)             out += in
//   CausalConv(layer, mamba, rows, proj)   on the [x|B|C] columns of proj: depthwise convolution over the
//   sequence with the
//                                          slot's last inputs, + bias, SiLU; in place; updates the slot
//   SelectiveScan(layer, mamba, rows, proj, y)
//                                          dt = clamp(softplus(dt + dt_bias)); S = exp(dt·a)·S + dt·x⊗B; y =
//                                          S·C + d·x; updates the slot's S
//   GatedNorm(mamba, rows, proj, y)        y = gated_norm · rms_per_group(y · silu(z))
//   Attend(layer, attention, rows, q, k, v, out)
//                                          appends k, v to the sequence's pages, then causal grouped-query
//                                          attention over all positions so far, scale head_dim^-0.5, no
//                                          rotary embedding
//   MlpAdd(mlp, rows, in, hidden, out)     out += down(relu(up in)²); `hidden` is scratch
//   RouteExperts(moe, rows, router_in, in, out)
//                                          sigmoid router on router_in, bias only for the choice, grouped
//                                          top-k, weights normalised and scaled; out = Σ weight_e ·
//                                          down_e(relu(up_e in)²)
//   GatherRows(indices, width, in, out)    out[i] = in[indices[i]]
template <typename T>
concept Operations = requires(T ops, const Model& model, const Matrix& matrix, const Linear& linear,
                              const MambaLayer& mamba, const AttentionLayer& attention, const Mlp& mlp,
                              const MoeLayer& moe, RowSet rows, RowBuffer buffer, int layer, float eps,
                              absl::Span<const int32_t> tokens, absl::Span<const int> indices,
                              absl::Span<const float> weight, absl::Span<const int64_t> widths) {
  { ops.Allocate(layer, int64_t{}) } -> std::same_as<RowBuffer>;
  ops.Embed(matrix, tokens, widths, rows, buffer);
  ops.RmsNorm(weight, eps, widths, rows, buffer, buffer);
  ops.Multiply(linear, rows, buffer, buffer);
  ops.MultiplyAdd(linear, rows, buffer, buffer);
  ops.Add(widths, rows, buffer, buffer);
  ops.CausalConv(layer, mamba, rows, buffer);
  ops.SelectiveScan(layer, mamba, rows, buffer, buffer);
  ops.GatedNorm(mamba, rows, buffer, buffer);
  ops.Attend(layer, attention, rows, buffer, buffer, buffer, buffer);
  ops.MlpAdd(mlp, rows, buffer, buffer, buffer);
  ops.RouteExperts(moe, rows, buffer, buffer, buffer);
  ops.GatherRows(indices, int64_t{}, buffer, buffer);
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_MODEL_OPERATIONS_H_
