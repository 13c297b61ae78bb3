// Which tensors a NemotronH checkpoint holds, and which part of each a submodel keeps. The one place that
// knows the slice map (Star Elastic): shape checks, parameter counts, byte counts, the model's strided views
// and the slice writer all follow it.
#ifndef NESTOR_ENGINE_CHECKPOINT_TENSOR_SCHEMA_H_
#define NESTOR_ENGINE_CHECKPOINT_TENSOR_SCHEMA_H_

#include <string>
#include <vector>

#include "engine/base/extent.h"
#include "engine/checkpoint/model_config.h"

namespace nestor {

// What one dimension of a tensor counts.
enum class Axis {
  kOne,  // a dimension of size 1
  kVocab,
  kHidden,
  kInProjRows,    // [z | x | B | C | dt]
  kConvChannels,  // [x | B | C]
  kConvTaps,
  kMambaInner,  // heads × head_dim
  kMambaHeads,
  kQuery,     // query heads × head_dim
  kKeyValue,  // key/value heads × head_dim
  kMlp,
  kExperts,
  kExpert,       // width of one routed expert
  kExpertInput,  // hidden, or the latent width where the layer has one
  kSharedExpert,
  kLatent,
};

// Which role a tensor plays; with (layer, expert) it identifies the tensor.
enum class TensorRole {
  kEmbeddings,
  kFinalNorm,
  kLmHead,
  kNorm,
  kInProj,
  kConvWeight,
  kConvBias,
  kALog,
  kD,
  kDtBias,
  kGatedNorm,
  kOutProj,
  kQueryProj,
  kKeyProj,
  kValueProj,
  kAttentionOut,
  kMlpUp,
  kMlpDown,
  kRouter,
  kRouterBias,
  kExpertUp,
  kExpertDown,
  kSharedUp,
  kSharedDown,
  kLatentDown,
  kLatentUp,
};

struct TensorSpec {
  TensorRole role;
  int layer = -1;    // -1: not part of a layer
  int expert = -1;   // -1: not part of a routed expert
  std::string name;  // "backbone.layers.3.mixer.in_proj.weight"
  std::vector<Axis> axes;
};

// Every tensor of the full model, in a fixed order: embeddings, layers, final norm, head.
std::vector<TensorSpec> TensorSchema(const ModelConfig& config);

// The name of one tensor: TensorName(kExpertUp, 3, 7) = "backbone.layers.3.mixer.experts.7.up_proj.weight".
std::string TensorName(TensorRole role, int layer = -1, int expert = -1);

// The indices `submodel` keeps on `axis` in `layer` (-1 for tensors outside layers): a prefix, except for
// Mamba heads (the first k/n_groups of every group) and query heads (the first k/num_key_value_heads of every
// KV group). Against the full shape it covers the whole axis.
Extents Kept(Axis axis, int layer, const ModelConfig& config, const SubmodelShape& submodel);

// Whether the submodel uses the tensor at all: its layer is active and its expert is among the kept.
bool Uses(const SubmodelShape& submodel, const TensorSpec& tensor);

// The shape of `tensor` in `submodel` (the full shape for config.full).
std::vector<int64_t> ShapeOf(const TensorSpec& tensor, const ModelConfig& config,
                             const SubmodelShape& submodel);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_TENSOR_SCHEMA_H_
