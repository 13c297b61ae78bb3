// The NemotronH model as the step computes it: parent matrices inside the mapped checkpoint and, for each
// submodel, which rows and columns of them it keeps. Nothing is copied but the small vectors (norms, biases,
// convolution), which are widened to float32 once for all submodels.
#ifndef NESTOR_ENGINE_MODEL_MODEL_H_
#define NESTOR_ENGINE_MODEL_MODEL_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "engine/base/extent.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/quant/matrix.h"

namespace nestor {

// The part of a parent matrix that one submodel multiplies with: a strided view, one extent on each axis
// unless Mamba or query heads are cut.
struct MatrixSlice {
  Extents rows;
  Extents cols;
  int64_t out_width = 0;  // TotalCount(rows)
  int64_t in_width = 0;   // TotalCount(cols)
};

// y = W x for every submodel.
struct Linear {
  Matrix matrix;
  std::vector<MatrixSlice> slices;  // one per submodel; widths 0 where the submodel skips the layer
};

// The matrices of the same role of all routed experts; every expert is cut alike.
struct ExpertLinear {
  std::vector<Matrix> matrices;     // one per expert
  std::vector<MatrixSlice> slices;  // one per submodel
};

// The Mamba heads a submodel keeps: the first kept/groups of every group.
struct HeadSlice {
  int kept = 0;
  int total = 0;
  int groups = 1;

  int group(int head) const { return head / (kept / groups); }
  // The parent's head behind the submodel's `head`.
  int parent(int head) const {
    const int kept_per_group = kept / groups;
    return head / kept_per_group * (total / groups) + head % kept_per_group;
  }
};

struct MambaLayer {
  Linear in_proj;  // hidden -> [z: inner | x: inner | B: groups·state | C: groups·state | dt: heads]
  std::vector<float>
      conv_weight;  // (channels, taps), the last tap meets the current token; channels are [x | B | C]
  std::vector<float> conv_bias;   // (channels), zeros where the model has none
  std::vector<float> a;           // (heads), -exp(A_log)
  std::vector<float> d;           // (heads)
  std::vector<float> dt_bias;     // (heads)
  std::vector<float> gated_norm;  // (inner)
  Linear out_proj;                // inner -> hidden
  std::vector<HeadSlice> heads;   // one per submodel
};

struct AttentionLayer {
  Linear query;                  // hidden -> query heads · head_dim
  Linear key;                    // hidden -> KV heads · head_dim
  Linear value;                  // hidden -> KV heads · head_dim
  Linear out;                    // query heads · head_dim -> hidden
  std::vector<int> query_heads;  // one per submodel
};

// down(relu(up x)²): ungated, the '-' layer and the shared expert.
struct Mlp {
  Linear up;
  Linear down;
};

struct MoeLayer {
  Linear router;                      // hidden -> experts
  std::vector<float> router_bias;     // (experts), e_score_correction_bias
  std::optional<Linear> latent_down;  // hidden -> latent, where the experts work on a latent vector
  ExpertLinear up;                    // hidden or latent -> expert width
  ExpertLinear down;                  // expert width -> hidden or latent
  std::optional<Linear> latent_up;    // latent -> hidden
  std::optional<Mlp> shared;
};

struct Layer {
  std::vector<float> norm;   // (hidden)
  std::vector<bool> active;  // one per submodel
  std::variant<MambaLayer, AttentionLayer, Mlp, MoeLayer> mixer;
};

struct Model {
  ModelConfig config;
  std::vector<SubmodelShape> submodels;
  Matrix embeddings;  // (vocab, hidden)
  std::vector<Layer> layers;
  std::vector<float> final_norm;  // (hidden)
  Linear lm_head;                 // hidden -> vocab

  int num_submodels() const { return static_cast<int>(submodels.size()); }
};

// Binds the checkpoint's tensors. The checkpoint must outlive the model; it was checked when opened, so this
// cannot fail.
Model BindModel(const Checkpoint& checkpoint);

}  // namespace nestor

#endif  // NESTOR_ENGINE_MODEL_MODEL_H_
