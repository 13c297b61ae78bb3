// The forward pass of NemotronH, written once for all backends.
#ifndef NESTOR_ENGINE_MODEL_GRAPH_H_
#define NESTOR_ENGINE_MODEL_GRAPH_H_

#include <algorithm>
#include <functional>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/operations.h"
#include "engine/model/step.h"

namespace nestor {

// Called after the embedding (layer -1) and after every layer with the residual stream; for finding faults by
// layer.
using ResidualObserver = std::function<void(int layer, const StepLayout& step, RowBuffer residual)>;

// The graph with its activation buffers. Not thread-safe; one step at a time.
template <Operations Ops>
class Graph {
 public:
  // Buffers for steps of up to `rows_max` rows of which `logits_rows_max` want logits.
  Graph(const Model& model, Ops& ops, int rows_max, int logits_rows_max) : model_(model), ops_(ops) {
    for (const SubmodelShape& submodel : model.submodels) {
      hidden_widths_.push_back(submodel.hidden_size);
      expert_input_widths_.push_back(ExpertInputWidth(submodel));
    }
    AllocateBuffers(rows_max, logits_rows_max);
  }

  // Logits of step.logits_rows, in that order: (logits rows, vocab).
  RowBuffer Forward(const StepLayout& step, const ResidualObserver* observer) {
    ops_.Embed(model_.embeddings, step.tokens, hidden_widths_, step.rows(), residual_);
    if (observer) (*observer)(-1, step, residual_);
    for (int index = 0; index < static_cast<int>(model_.layers.size()); ++index) {
      const Layer& layer = model_.layers[index];
      const RowSet rows = ActiveRows(layer, step);
      if (!rows.groups.empty()) {
        ops_.RmsNorm(layer.norm, model_.config.norm_eps, hidden_widths_, rows, residual_, normed_);
        std::visit([&](const auto& mixer) { Mix(index, mixer, rows); }, layer.mixer);
      }
      if (observer) (*observer)(index, step, residual_);
    }
    return Head(step);
  }

 private:
  // residual += mixer(normed), for the four kinds of layer.

  void Mix(int layer, const MambaLayer& mamba, RowSet rows) {
    ops_.Multiply(mamba.in_proj, rows, normed_, projected_);
    ops_.CausalConv(layer, mamba, rows, projected_);
    ops_.SelectiveScan(layer, mamba, rows, projected_, mixed_);
    ops_.GatedNorm(mamba, rows, projected_, mixed_);
    ops_.MultiplyAdd(mamba.out_proj, rows, mixed_, residual_);
  }

  void Mix(int layer, const AttentionLayer& attention, RowSet rows) {
    ops_.Multiply(attention.query, rows, normed_, query_);
    ops_.Multiply(attention.key, rows, normed_, key_);
    ops_.Multiply(attention.value, rows, normed_, value_);
    ops_.Attend(layer, attention, rows, query_, key_, value_, mixed_);
    ops_.MultiplyAdd(attention.out, rows, mixed_, residual_);
  }

  void Mix(int /*layer*/, const Mlp& mlp, RowSet rows) {
    ops_.MlpAdd(mlp, rows, normed_, mlp_hidden_, residual_);
  }

  void Mix(int /*layer*/, const MoeLayer& moe, RowSet rows) {
    if (moe.latent_down) {
      ops_.Multiply(*moe.latent_down, rows, normed_, latent_);
      ops_.RouteExperts(moe, rows, normed_, latent_, routed_);
      ops_.MultiplyAdd(*moe.latent_up, rows, routed_, residual_);
    } else {
      ops_.RouteExperts(moe, rows, normed_, normed_, routed_);
      ops_.Add(expert_input_widths_, rows, routed_, residual_);
    }
    if (moe.shared) ops_.MlpAdd(*moe.shared, rows, normed_, mlp_hidden_, residual_);
  }

  RowBuffer Head(const StepLayout& step) {
    const RowSet rows{step.logits_groups, {}};
    ops_.GatherRows(step.logits_rows, model_.config.full.hidden_size, residual_, normed_);
    ops_.RmsNorm(model_.final_norm, model_.config.norm_eps, hidden_widths_, rows, normed_, normed_);
    ops_.Multiply(model_.lm_head, rows, normed_, logits_);
    return logits_;
  }

  // The rows whose submodel has the layer. The common case, all of them, copies nothing.
  RowSet ActiveRows(const Layer& layer, const StepLayout& step) {
    const auto runs = [&](const auto& rows) { return layer.active[rows.submodel]; };
    if (std::all_of(step.groups.begin(), step.groups.end(), runs)) return step.rows();
    active_groups_.clear();
    active_sequences_.clear();
    std::copy_if(step.groups.begin(), step.groups.end(), std::back_inserter(active_groups_), runs);
    std::copy_if(step.sequences.begin(), step.sequences.end(), std::back_inserter(active_sequences_), runs);
    return {active_groups_, active_sequences_};
  }

  int64_t ExpertInputWidth(const SubmodelShape& submodel) const {
    return model_.config.moe_latent_size > 0 ? model_.config.moe_latent_size : submodel.hidden_size;
  }

  void AllocateBuffers(int rows, int logits_rows) {
    const ModelConfig& config = model_.config;
    int mamba_heads = 0, query_heads = 0, mlp_width = 0;
    for (const LayerShape& layer : config.full.layers) {
      mamba_heads = std::max(mamba_heads, layer.mamba_heads);
      query_heads = std::max(query_heads, layer.query_heads);
      mlp_width = std::max({mlp_width, layer.mlp_width, layer.shared_expert_width});
    }
    const int64_t inner = config.mamba_inner(mamba_heads);
    const int64_t query_width = int64_t{query_heads} * config.head_dim;
    residual_ = ops_.Allocate(rows, config.full.hidden_size);
    normed_ = ops_.Allocate(rows, config.full.hidden_size);
    projected_ = ops_.Allocate(rows, inner + config.conv_channels(mamba_heads) + mamba_heads);
    mixed_ = ops_.Allocate(rows, std::max(inner, query_width));
    query_ = ops_.Allocate(rows, query_width);
    key_ = ops_.Allocate(rows, config.kv_width());
    value_ = ops_.Allocate(rows, config.kv_width());
    mlp_hidden_ = ops_.Allocate(rows, mlp_width);
    latent_ = ops_.Allocate(rows, config.moe_latent_size);
    routed_ = ops_.Allocate(rows, ExpertInputWidth(config.full));
    logits_ = ops_.Allocate(logits_rows, config.vocab_size);
  }

  const Model& model_;
  Ops& ops_;
  std::vector<int64_t> hidden_widths_;        // (submodels)
  std::vector<int64_t> expert_input_widths_;  // (submodels)
  std::vector<RowGroup> active_groups_;
  std::vector<SequenceRows> active_sequences_;

  RowBuffer residual_;    // (rows, hidden)
  RowBuffer normed_;      // (rows, hidden)
  RowBuffer projected_;   // (rows, [z | x | B | C | dt])
  RowBuffer mixed_;       // (rows, inner) or (rows, query heads · head_dim)
  RowBuffer query_;       // (rows, query heads · head_dim)
  RowBuffer key_;         // (rows, KV heads · head_dim)
  RowBuffer value_;       // (rows, KV heads · head_dim)
  RowBuffer mlp_hidden_;  // (rows, MLP or shared expert width)
  RowBuffer latent_;      // (rows, latent)
  RowBuffer routed_;      // (rows, hidden or latent)
  RowBuffer logits_;      // (logits rows, vocab)
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_MODEL_GRAPH_H_
