#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/backend/cpu/cpu_operations.h"

namespace nestor {
namespace {

void SquaredRelu(float* x, int64_t width) {
  for (int64_t i = 0; i < width; ++i) {
    const float positive = std::max(x[i], 0.0f);
    x[i] = positive * positive;
  }
}

// Indices of the `count` largest of `values`, best first; ties go to the lowest index.
std::vector<int> LargestIndices(absl::Span<const float> values, int count) {
  std::vector<int> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](int a, int b) { return values[a] > values[b]; });
  indices.resize(count);
  return indices;
}

// Bars the experts outside the topk_group best of n_group groups; a group counts by the sum of its two best
// experts.
void KeepBestGroups(const ModelConfig& config, std::vector<float>& choice) {
  if (config.n_group == 1) return;
  const int group_size = static_cast<int>(choice.size()) / config.n_group;
  std::vector<float> group_scores;
  for (int group = 0; group < config.n_group; ++group) {
    std::vector<float> best(choice.begin() + group * group_size, choice.begin() + (group + 1) * group_size);
    std::sort(best.begin(), best.end(), std::greater<>());
    group_scores.push_back(best[0] + (group_size > 1 ? best[1] : 0.0f));
  }
  std::vector<bool> kept(config.n_group);
  for (const int group : LargestIndices(group_scores, config.topk_group)) kept[group] = true;
  for (size_t expert = 0; expert < choice.size(); ++expert) {
    if (!kept[expert / group_size]) choice[expert] = -INFINITY;
  }
}

}  // namespace

void CpuOperations::MlpAdd(const Mlp& mlp, RowSet rows, RowBuffer in, RowBuffer hidden, RowBuffer out) {
  Multiply(mlp.up, rows, in, hidden);
  for (const RowGroup& group : rows.groups) {
    for (int row = group.begin; row < group.end; ++row) {
      SquaredRelu(hidden.row(row), mlp.up.slices[group.submodel].out_width);
    }
  }
  MultiplyAdd(mlp.down, rows, hidden, out);
}

// Experts run in ascending order, so a row's sum has one order whatever the other rows chose.
void CpuOperations::RouteExperts(const MoeLayer& moe, RowSet rows, RowBuffer router_in, RowBuffer in,
                                 RowBuffer out) {
  std::vector<std::vector<ExpertChoice>> chosen;
  for (const RowGroup& group : rows.groups) {
    const int64_t out_width = moe.down.slices[group.submodel].out_width;
    for (int row = group.begin; row < group.end; ++row) std::fill_n(out.row(row), out_width, 0.0f);
    ChooseExperts(moe, group, router_in, chosen);
    for (size_t expert = 0; expert < chosen.size(); ++expert) {
      RunExpert(moe, static_cast<int>(expert), group.submodel, chosen[expert], in, out);
    }
  }
}

void CpuOperations::ChooseExperts(const MoeLayer& moe, const RowGroup& group, RowBuffer router_in,
                                  std::vector<std::vector<ExpertChoice>>& chosen) {
  const MatrixSlice& slice = moe.router.slices[group.submodel];
  chosen.assign(slice.out_width, {});
  std::vector<float> scores(slice.out_width);
  for (int row = group.begin; row < group.end; ++row) {
    MultiplySlice(moe.router.matrix, slice, {router_in.row(row)}, {scores.data()}, Store::kAssign);
    for (float& score : scores) score = 1.0f / (1.0f + std::exp(-score));
    std::vector<float> choice = scores;  // the bias decides who is chosen, not with what weight
    for (size_t expert = 0; expert < choice.size(); ++expert) choice[expert] += moe.router_bias[expert];
    KeepBestGroups(config_, choice);
    const std::vector<int> experts = LargestIndices(choice, config_.num_experts_per_tok);
    float total = 0;
    for (const int expert : experts) total += scores[expert];
    const float normaliser = config_.norm_topk_prob ? 1.0f / (total + 1e-20f) : 1.0f;
    for (const int expert : experts) {
      chosen[expert].push_back({row, scores[expert] * normaliser * config_.routed_scaling_factor});
    }
  }
}

void CpuOperations::RunExpert(const MoeLayer& moe, int expert, int submodel,
                              absl::Span<const ExpertChoice> rows, RowBuffer in, RowBuffer out) {
  if (rows.empty()) return;
  const MatrixSlice& up = moe.up.slices[submodel];
  const MatrixSlice& down = moe.down.slices[submodel];
  std::vector<float> hidden(rows.size() * up.out_width);
  std::vector<float> result(rows.size() * down.out_width);
  std::vector<const float*> inputs;
  std::vector<float*> hidden_rows, result_rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    inputs.push_back(in.row(rows[i].row));
    hidden_rows.push_back(hidden.data() + i * up.out_width);
    result_rows.push_back(result.data() + i * down.out_width);
  }
  MultiplySlice(moe.up.matrices[expert], up, inputs, hidden_rows, Store::kAssign);
  SquaredRelu(hidden.data(), static_cast<int64_t>(hidden.size()));
  const std::vector<const float*> activated(hidden_rows.begin(), hidden_rows.end());
  MultiplySlice(moe.down.matrices[expert], down, activated, result_rows, Store::kAssign);
  for (size_t i = 0; i < rows.size(); ++i) {
    float* const y = out.row(rows[i].row);
    for (int64_t k = 0; k < down.out_width; ++k) y[k] += rows[i].weight * result_rows[i][k];
  }
}

}  // namespace nestor
