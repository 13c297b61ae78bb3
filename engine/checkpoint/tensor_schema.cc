#include "engine/checkpoint/tensor_schema.h"

#include "engine/base/str_cat.h"

namespace nestor {
namespace {

// The file name of a role within its layer or expert.
std::string_view Suffix(TensorRole role) {
  switch (role) {
    case TensorRole::kEmbeddings:
      return "backbone.embeddings.weight";
    case TensorRole::kFinalNorm:
      return "backbone.norm_f.weight";
    case TensorRole::kLmHead:
      return "lm_head.weight";
    case TensorRole::kNorm:
      return "norm.weight";
    case TensorRole::kInProj:
      return "mixer.in_proj.weight";
    case TensorRole::kConvWeight:
      return "mixer.conv1d.weight";
    case TensorRole::kConvBias:
      return "mixer.conv1d.bias";
    case TensorRole::kALog:
      return "mixer.A_log";
    case TensorRole::kD:
      return "mixer.D";
    case TensorRole::kDtBias:
      return "mixer.dt_bias";
    case TensorRole::kGatedNorm:
      return "mixer.norm.weight";
    case TensorRole::kOutProj:
      return "mixer.out_proj.weight";
    case TensorRole::kQueryProj:
      return "mixer.q_proj.weight";
    case TensorRole::kKeyProj:
      return "mixer.k_proj.weight";
    case TensorRole::kValueProj:
      return "mixer.v_proj.weight";
    case TensorRole::kAttentionOut:
      return "mixer.o_proj.weight";
    case TensorRole::kMlpUp:
      return "mixer.up_proj.weight";
    case TensorRole::kMlpDown:
      return "mixer.down_proj.weight";
    case TensorRole::kRouter:
      return "mixer.gate.weight";
    case TensorRole::kRouterBias:
      return "mixer.gate.e_score_correction_bias";
    case TensorRole::kExpertUp:
      return "up_proj.weight";
    case TensorRole::kExpertDown:
      return "down_proj.weight";
    case TensorRole::kSharedUp:
      return "mixer.shared_experts.up_proj.weight";
    case TensorRole::kSharedDown:
      return "mixer.shared_experts.down_proj.weight";
    case TensorRole::kLatentDown:
      return "mixer.fc1_latent_proj.weight";
    case TensorRole::kLatentUp:
      return "mixer.fc2_latent_proj.weight";
  }
  return "";
}

void AddMamba(const ModelConfig& config, int layer, std::vector<TensorSpec>& schema) {
  const auto add = [&](TensorRole role, std::vector<Axis> axes) {
    schema.push_back({role, layer, -1, TensorName(role, layer), std::move(axes)});
  };
  add(TensorRole::kInProj, {Axis::kInProjRows, Axis::kHidden});
  add(TensorRole::kConvWeight, {Axis::kConvChannels, Axis::kOne, Axis::kConvTaps});
  if (config.use_conv_bias) add(TensorRole::kConvBias, {Axis::kConvChannels});
  add(TensorRole::kALog, {Axis::kMambaHeads});
  add(TensorRole::kD, {Axis::kMambaHeads});
  add(TensorRole::kDtBias, {Axis::kMambaHeads});
  add(TensorRole::kGatedNorm, {Axis::kMambaInner});
  add(TensorRole::kOutProj, {Axis::kHidden, Axis::kMambaInner});
}

void AddMoe(const ModelConfig& config, int layer, std::vector<TensorSpec>& schema) {
  const auto add = [&](TensorRole role, std::vector<Axis> axes, int expert = -1) {
    schema.push_back({role, layer, expert, TensorName(role, layer, expert), std::move(axes)});
  };
  const LayerShape& shape = config.full.layers[layer];
  add(TensorRole::kRouter, {Axis::kExperts, Axis::kHidden});
  add(TensorRole::kRouterBias, {Axis::kExperts});
  for (int expert = 0; expert < shape.routed_experts; ++expert) {
    add(TensorRole::kExpertUp, {Axis::kExpert, Axis::kExpertInput}, expert);
    add(TensorRole::kExpertDown, {Axis::kExpertInput, Axis::kExpert}, expert);
  }
  if (shape.shared_expert_width > 0) {
    add(TensorRole::kSharedUp, {Axis::kSharedExpert, Axis::kHidden});
    add(TensorRole::kSharedDown, {Axis::kHidden, Axis::kSharedExpert});
  }
  if (config.moe_latent_size > 0) {
    add(TensorRole::kLatentDown, {Axis::kLatent, Axis::kHidden});
    add(TensorRole::kLatentUp, {Axis::kHidden, Axis::kLatent});
  }
}

void AddLayer(const ModelConfig& config, int layer, std::vector<TensorSpec>& schema) {
  const auto add = [&](TensorRole role, std::vector<Axis> axes) {
    schema.push_back({role, layer, -1, TensorName(role, layer), std::move(axes)});
  };
  add(TensorRole::kNorm, {Axis::kHidden});
  switch (config.full.layers[layer].kind) {
    case LayerKind::kMamba:
      return AddMamba(config, layer, schema);
    case LayerKind::kAttention:
      add(TensorRole::kQueryProj, {Axis::kQuery, Axis::kHidden});
      add(TensorRole::kKeyProj, {Axis::kKeyValue, Axis::kHidden});
      add(TensorRole::kValueProj, {Axis::kKeyValue, Axis::kHidden});
      add(TensorRole::kAttentionOut, {Axis::kHidden, Axis::kQuery});
      return;
    case LayerKind::kMlp:
      add(TensorRole::kMlpUp, {Axis::kMlp, Axis::kHidden});
      add(TensorRole::kMlpDown, {Axis::kHidden, Axis::kMlp});
      return;
    case LayerKind::kMoe:
      return AddMoe(config, layer, schema);
  }
}

// Appends the first kept/groups of every group of heads, each `unit` indices wide, from `base` on.
void AppendHeads(Extents& extents, int64_t base, int groups, int total, int kept, int64_t unit) {
  for (int group = 0; group < groups; ++group) {
    AppendExtent(extents, {base + group * (total / groups) * unit, kept / groups * unit});
  }
}

Extents Prefix(int64_t count) { return {{0, count}}; }

// The axes of a Mamba layer: z, x and dt are cut by heads, B and C are whole.
Extents KeptMamba(Axis axis, const ModelConfig& config, int total, int kept) {
  const int64_t inner = config.mamba_inner(total);
  const int64_t b_and_c = config.conv_channels(total) - inner;
  const auto append = [&](Extents& extents, int64_t base, int64_t unit) {
    AppendHeads(extents, base, config.n_groups, total, kept, unit);
  };
  Extents extents;
  switch (axis) {
    case Axis::kInProjRows:
      append(extents, 0, config.mamba_head_dim);
      append(extents, inner, config.mamba_head_dim);
      AppendExtent(extents, {2 * inner, b_and_c});
      append(extents, 2 * inner + b_and_c, 1);
      break;
    case Axis::kConvChannels:
      append(extents, 0, config.mamba_head_dim);
      AppendExtent(extents, {inner, b_and_c});
      break;
    case Axis::kMambaInner:
      append(extents, 0, config.mamba_head_dim);
      break;
    default:  // kMambaHeads
      append(extents, 0, 1);
      break;
  }
  return extents;
}

}  // namespace

std::string TensorName(TensorRole role, int layer, int expert) {
  if (layer < 0) return std::string(Suffix(role));
  if (expert < 0) return StrCat("backbone.layers.", layer, ".", Suffix(role));
  return StrCat("backbone.layers.", layer, ".mixer.experts.", expert, ".", Suffix(role));
}

std::vector<TensorSpec> TensorSchema(const ModelConfig& config) {
  std::vector<TensorSpec> schema;
  const auto add = [&](TensorRole role, std::vector<Axis> axes) {
    schema.push_back({role, -1, -1, TensorName(role), std::move(axes)});
  };
  add(TensorRole::kEmbeddings, {Axis::kVocab, Axis::kHidden});
  for (int layer = 0; layer < config.num_layers(); ++layer) AddLayer(config, layer, schema);
  add(TensorRole::kFinalNorm, {Axis::kHidden});
  if (!config.tie_word_embeddings) add(TensorRole::kLmHead, {Axis::kVocab, Axis::kHidden});
  return schema;
}

Extents Kept(Axis axis, int layer, const ModelConfig& config, const SubmodelShape& submodel) {
  const LayerShape none;
  const LayerShape& parent = layer >= 0 ? config.full.layers[layer] : none;
  const LayerShape& kept = layer >= 0 ? submodel.layers[layer] : none;
  switch (axis) {
    case Axis::kOne:
      return Prefix(1);
    case Axis::kVocab:
      return Prefix(config.vocab_size);
    case Axis::kHidden:
      return Prefix(submodel.hidden_size);
    case Axis::kConvTaps:
      return Prefix(config.conv_kernel);
    case Axis::kInProjRows:
    case Axis::kConvChannels:
    case Axis::kMambaInner:
    case Axis::kMambaHeads:
      return KeptMamba(axis, config, parent.mamba_heads, kept.mamba_heads);
    case Axis::kQuery: {
      Extents extents;
      AppendHeads(extents, 0, config.num_key_value_heads, parent.query_heads, kept.query_heads,
                  config.head_dim);
      return extents;
    }
    case Axis::kKeyValue:
      return Prefix(config.kv_width());
    case Axis::kMlp:
      return Prefix(kept.mlp_width);
    case Axis::kExperts:
      return Prefix(kept.routed_experts);
    case Axis::kExpert:
      return Prefix(kept.expert_width);
    case Axis::kExpertInput:
      return Prefix(config.moe_latent_size > 0 ? config.moe_latent_size : submodel.hidden_size);
    case Axis::kSharedExpert:
      return Prefix(kept.shared_expert_width);
    case Axis::kLatent:
      return Prefix(config.moe_latent_size);
  }
  return {};
}

bool Uses(const SubmodelShape& submodel, const TensorSpec& tensor) {
  if (tensor.layer < 0) return true;
  const LayerShape& layer = submodel.layers[tensor.layer];
  return layer.active && tensor.expert < layer.routed_experts;
}

std::vector<int64_t> ShapeOf(const TensorSpec& tensor, const ModelConfig& config,
                             const SubmodelShape& submodel) {
  std::vector<int64_t> shape;
  for (const Axis axis : tensor.axes) shape.push_back(TotalCount(Kept(axis, tensor.layer, config, submodel)));
  return shape;
}

}  // namespace nestor
