// The architecture of a NemotronH checkpoint as read from config.json and generation_config.json.
#ifndef NESTOR_ENGINE_CHECKPOINT_MODEL_CONFIG_H_
#define NESTOR_ENGINE_CHECKPOINT_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/json.h"

namespace nestor {

// One letter of `hybrid_override_pattern`.
enum class LayerKind { kMamba, kAttention, kMlp, kMoe };  // 'M', '*', '-', 'E'

char LayerLetter(LayerKind kind);

// The widths of one layer that a submodel may cut. Fields that do not apply to the layer's kind are 0.
struct LayerShape {
  LayerKind kind = LayerKind::kMamba;
  bool active = true;      // false: the submodel skips this layer (`layers` axis)
  int mamba_heads = 0;     // M: a multiple of n_groups
  int query_heads = 0;     // *: a multiple of num_key_value_heads
  int mlp_width = 0;       // -: intermediate_size
  int routed_experts = 0;  // E
  int expert_width = 0;    // E: moe_intermediate_size
  // E: moe_shared_expert_intermediate_size * n_shared_experts; 0: no shared expert.
  int shared_expert_width = 0;

  bool operator==(const LayerShape&) const = default;
};

// The shape of one nested submodel (or of the full model).
struct SubmodelShape {
  std::string name;
  int hidden_size = 0;
  std::vector<LayerShape> layers;  // one per layer of the parent
};

// Everything all submodels of a checkpoint have in common, and the full shape.
struct ModelConfig {
  int vocab_size = 0;
  int mamba_head_dim = 0;
  int ssm_state_size = 0;
  int n_groups = 0;
  int conv_kernel = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  float norm_eps = 0;             // layer_norm_epsilon
  float time_step_limit_min = 0;  // runtime clamp of dt; time_step_min/max/floor are initialisation only
  float time_step_limit_max = 0;  // +infinity where config.json gives no limit
  bool use_conv_bias = true;
  bool tie_word_embeddings = false;
  int num_experts_per_tok = 0;
  int n_group = 1;
  int topk_group = 1;
  bool norm_topk_prob = true;
  float routed_scaling_factor = 1;
  int moe_latent_size = 0;  // 0: experts work on the hidden vector itself
  int max_position_embeddings = 0;

  SubmodelShape full;  // named "full"

  // generation_config.json (all its eos ids), else config.json.
  std::optional<int> bos_token_id;
  std::vector<int> eos_token_ids;
  bool do_sample = false;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int> top_k;

  int num_layers() const { return static_cast<int>(full.layers.size()); }
  int mamba_inner(int heads) const { return heads * mamba_head_dim; }  // width of z and x
  int conv_channels(int heads) const {
    return mamba_inner(heads) + 2 * n_groups * ssm_state_size;
  }  // x, B, C
  int kv_width() const { return num_key_value_heads * head_dim; }
};

// Reads config.json with all spellings of the family: `hybrid_override_pattern`, `layers_block_type` or
// `layer_types`; the aliases of native transformers; widths as a number or as a list with one value a layer
// (null where the axis does not apply), a `nestor-checkpoint slice` of a heterogeneous submodel.
// INVALID_ARGUMENT names the key, what was expected and what was found; UNIMPLEMENTED names a feature of the
// family that Nestor does not run (biases, Puzzle blocks, …).
//
// Not read, because nothing at run time depends on them: rope_theta and partial_rotary_factor (the family has
// no RoPE), expand (the Mamba width is heads × head size), time_step_min, _max and _floor (initialisation;
// the run-time clamp is time_step_limit), chunk_size, dtypes (each tensor has its own) and multi-token
// prediction. All arithmetic and state are float32, whatever mamba_ssm_cache_dtype and residual_in_fp32 say.
absl::StatusOr<ModelConfig> ParseModelConfig(const Json& config, std::string_view source);

// Adds generation_config.json to `config`: eos and bos ids, default sampling.
absl::Status ApplyGenerationConfig(const Json& generation_config, std::string_view source,
                                   ModelConfig& config);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_MODEL_CONFIG_H_
