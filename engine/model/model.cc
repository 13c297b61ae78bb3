#include "engine/model/model.h"

#include <cmath>
#include <string>

namespace nestor {
namespace {

// Reads tensors of one layer (or of no layer, -1) and cuts them for all submodels.
class LayerBinder {
 public:
  LayerBinder(const Checkpoint& checkpoint, int layer) : checkpoint_(checkpoint), layer_(layer) {}

  Matrix BindMatrix(TensorRole role, int expert = -1) const {
    const Tensor& tensor = Find(role, expert);
    return {FormatOf(tensor.dtype), tensor.bytes.data(), tensor.shape[0], tensor.shape[1]};
  }

  Linear BindLinear(TensorRole role, Axis out, Axis in) const { return {BindMatrix(role), Slices(out, in)}; }

  ExpertLinear BindExperts(TensorRole role, Axis out, Axis in) const {
    ExpertLinear experts;
    const int count = config().full.layers[layer_].routed_experts;
    for (int expert = 0; expert < count; ++expert) experts.matrices.push_back(BindMatrix(role, expert));
    experts.slices = Slices(out, in);
    return experts;
  }

  // All elements, widened, whatever the shape.
  std::vector<float> BindVector(TensorRole role) const {
    const Tensor& tensor = Find(role, -1);
    std::vector<float> values(tensor.element_count());
    WidenToFloat(tensor.dtype, tensor.bytes.data(), tensor.element_count(), values.data());
    return values;
  }

 private:
  const ModelConfig& config() const { return checkpoint_.config(); }

  const Tensor& Find(TensorRole role, int expert) const {
    return checkpoint_.tensor(TensorName(role, layer_, expert));
  }

  std::vector<MatrixSlice> Slices(Axis out, Axis in) const {
    std::vector<MatrixSlice> slices;
    for (const SubmodelShape& submodel : checkpoint_.elastic().submodels) {
      MatrixSlice& slice = slices.emplace_back();
      if (layer_ >= 0 && !submodel.layers[layer_].active) continue;
      slice.rows = Kept(out, layer_, config(), submodel);
      slice.cols = Kept(in, layer_, config(), submodel);
      slice.out_width = TotalCount(slice.rows);
      slice.in_width = TotalCount(slice.cols);
    }
    return slices;
  }

  const Checkpoint& checkpoint_;
  const int layer_;
};

MambaLayer BindMamba(const Checkpoint& checkpoint, int layer) {
  const LayerBinder binder(checkpoint, layer);
  const ModelConfig& config = checkpoint.config();
  const int total_heads = config.full.layers[layer].mamba_heads;
  MambaLayer mamba;
  mamba.in_proj = binder.BindLinear(TensorRole::kInProj, Axis::kInProjRows, Axis::kHidden);
  mamba.conv_weight = binder.BindVector(TensorRole::kConvWeight);
  mamba.conv_bias = config.use_conv_bias ? binder.BindVector(TensorRole::kConvBias)
                                         : std::vector<float>(config.conv_channels(total_heads));
  mamba.a = binder.BindVector(TensorRole::kALog);
  for (float& a : mamba.a) a = -std::exp(a);
  mamba.d = binder.BindVector(TensorRole::kD);
  mamba.dt_bias = binder.BindVector(TensorRole::kDtBias);
  mamba.gated_norm = binder.BindVector(TensorRole::kGatedNorm);
  mamba.out_proj = binder.BindLinear(TensorRole::kOutProj, Axis::kHidden, Axis::kMambaInner);
  for (const SubmodelShape& submodel : checkpoint.elastic().submodels) {
    mamba.heads.push_back({submodel.layers[layer].mamba_heads, total_heads, config.n_groups});
  }
  return mamba;
}

AttentionLayer BindAttention(const Checkpoint& checkpoint, int layer) {
  const LayerBinder binder(checkpoint, layer);
  AttentionLayer attention;
  attention.query = binder.BindLinear(TensorRole::kQueryProj, Axis::kQuery, Axis::kHidden);
  attention.key = binder.BindLinear(TensorRole::kKeyProj, Axis::kKeyValue, Axis::kHidden);
  attention.value = binder.BindLinear(TensorRole::kValueProj, Axis::kKeyValue, Axis::kHidden);
  attention.out = binder.BindLinear(TensorRole::kAttentionOut, Axis::kHidden, Axis::kQuery);
  for (const SubmodelShape& submodel : checkpoint.elastic().submodels) {
    attention.query_heads.push_back(submodel.layers[layer].query_heads);
  }
  return attention;
}

Mlp BindMlp(const Checkpoint& checkpoint, int layer) {
  const LayerBinder binder(checkpoint, layer);
  return {binder.BindLinear(TensorRole::kMlpUp, Axis::kMlp, Axis::kHidden),
          binder.BindLinear(TensorRole::kMlpDown, Axis::kHidden, Axis::kMlp)};
}

MoeLayer BindMoe(const Checkpoint& checkpoint, int layer) {
  const LayerBinder binder(checkpoint, layer);
  MoeLayer moe;
  moe.router = binder.BindLinear(TensorRole::kRouter, Axis::kExperts, Axis::kHidden);
  moe.router_bias = binder.BindVector(TensorRole::kRouterBias);
  moe.up = binder.BindExperts(TensorRole::kExpertUp, Axis::kExpert, Axis::kExpertInput);
  moe.down = binder.BindExperts(TensorRole::kExpertDown, Axis::kExpertInput, Axis::kExpert);
  if (checkpoint.config().moe_latent_size > 0) {
    moe.latent_down = binder.BindLinear(TensorRole::kLatentDown, Axis::kLatent, Axis::kHidden);
    moe.latent_up = binder.BindLinear(TensorRole::kLatentUp, Axis::kHidden, Axis::kLatent);
  }
  if (checkpoint.config().full.layers[layer].shared_expert_width > 0) {
    moe.shared = Mlp{binder.BindLinear(TensorRole::kSharedUp, Axis::kSharedExpert, Axis::kHidden),
                     binder.BindLinear(TensorRole::kSharedDown, Axis::kHidden, Axis::kSharedExpert)};
  }
  return moe;
}

Layer BindLayer(const Checkpoint& checkpoint, int index) {
  Layer layer;
  layer.norm = LayerBinder(checkpoint, index).BindVector(TensorRole::kNorm);
  for (const SubmodelShape& submodel : checkpoint.elastic().submodels) {
    layer.active.push_back(submodel.layers[index].active);
  }
  switch (checkpoint.config().full.layers[index].kind) {
    case LayerKind::kMamba:
      layer.mixer = BindMamba(checkpoint, index);
      break;
    case LayerKind::kAttention:
      layer.mixer = BindAttention(checkpoint, index);
      break;
    case LayerKind::kMlp:
      layer.mixer = BindMlp(checkpoint, index);
      break;
    case LayerKind::kMoe:
      layer.mixer = BindMoe(checkpoint, index);
      break;
  }
  return layer;
}

}  // namespace

Model BindModel(const Checkpoint& checkpoint) {
  const LayerBinder binder(checkpoint, -1);
  Model model;
  model.config = checkpoint.config();
  model.submodels = checkpoint.elastic().submodels;
  model.embeddings = binder.BindMatrix(TensorRole::kEmbeddings);
  for (int layer = 0; layer < model.config.num_layers(); ++layer)
    model.layers.push_back(BindLayer(checkpoint, layer));
  model.final_norm = binder.BindVector(TensorRole::kFinalNorm);
  model.lm_head = binder.BindLinear(TensorRole::kLmHead, Axis::kVocab, Axis::kHidden);
  return model;
}

}  // namespace nestor
