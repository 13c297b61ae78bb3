#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/json_reader.h"
#include "engine/checkpoint/layer_list.h"
#include "engine/checkpoint/layer_widths.h"

namespace nestor {
namespace {

// Bounds far above any real model, low enough that no dimension leaves int and no count of elements int64_t.
constexpr int kHeadsMax = 1 << 14;  // heads, head dimensions, groups, SSM state
constexpr int kWidthMax = 1 << 20;  // hidden, MLP, expert and latent widths
constexpr int kVocabularyMax = 1 << 24;
constexpr int kExpertsMax = 1 << 16;     // of one layer
constexpr int kAllExpertsMax = 1 << 18;  // of all layers
constexpr int kContextMax = 1 << 28;

constexpr std::string_view kPuzzleName = "NemotronHPuzzleForCausalLM";

// The heterogeneous relatives ("Puzzle") are named for what they are; every other model is not of the family.
absl::Status CheckFamily(JsonReader& reader) {
  if (const Json* const blocks = reader.Find({"block_configs"})) {
    return reader.Unsupported("block_configs", "no such key, as in ordinary NemotronH models", *blocks);
  }
  const Json* const names = reader.Find({"architectures"});
  if (names != nullptr && names->is_array() && std::count(names->begin(), names->end(), kPuzzleName) > 0) {
    return reader.Unsupported("architectures", "NemotronHForCausalLM", *names);
  }
  const Json* const type = reader.Find({"model_type"});
  if (type == nullptr) return reader.Missing("model_type", "'nemotron_h'");
  return *type == "nemotron_h" ? absl::OkStatus() : reader.Error("model_type", "'nemotron_h'", *type);
}

// Features of the family that this engine does not run: better refused than computed wrongly.
absl::Status RefuseUnsupported(JsonReader& reader) {
  for (const char* key : {"use_bias", "mamba_proj_bias", "attention_bias", "mlp_bias"}) {
    NESTOR_ASSIGN_OR_RETURN(const bool biased, reader.BoolOr({key}, false));
    if (biased) return reader.Unsupported(key, "false", true);
  }
  for (const auto& [key, word] :
       {std::pair{"mamba_hidden_act", "silu"}, std::pair{"mlp_hidden_act", "relu2"}}) {
    NESTOR_ASSIGN_OR_RETURN(const std::string activation, reader.StringOr({key}, word));
    if (activation != word) return reader.Unsupported(key, StrCat("'", word, "'"), activation);
  }
  if (const Json* const window = reader.Find({"sliding_window"})) {
    return reader.Unsupported("sliding_window", "null", *window);
  }
  return absl::OkStatus();
}

// One end of time_step_limit. Infinity is no JSON number: files have it as a word, or since transformers 5 as
// {"__float__": "Infinity"}.
std::optional<float> TimeStep(const Json& value) {
  const bool is_wrapped = value.is_object() && value.size() == 1 && value.contains("__float__");
  const Json& inner = is_wrapped ? value["__float__"] : value;
  if (inner == "Infinity" || inner == "inf") return std::numeric_limits<float>::infinity();
  if (!inner.is_number()) return std::nullopt;
  const double number = inner.get<double>();
  if (number < 0) return std::nullopt;
  return number > std::numeric_limits<float>::max() ? std::numeric_limits<float>::infinity()
                                                    : static_cast<float>(number);
}

absl::Status ReadTimeStepLimit(JsonReader& reader, ModelConfig& config) {
  config.time_step_limit_max = std::numeric_limits<float>::infinity();
  const Json* const limit = reader.Find({"time_step_limit", "mamba_dt_limit"});
  if (limit == nullptr) return absl::OkStatus();
  const bool is_pair = limit->is_array() && limit->size() == 2;
  const std::optional<float> least = is_pair ? TimeStep((*limit)[0]) : std::nullopt;
  const std::optional<float> most = is_pair ? TimeStep((*limit)[1]) : std::nullopt;
  if (!least || !most || *least > *most || std::isinf(*least)) {
    return reader.Error("time_step_limit", "[least, most] with 0 ≤ least ≤ most", *limit);
  }
  config.time_step_limit_min = *least;
  config.time_step_limit_max = *most;
  return absl::OkStatus();
}

absl::Status ReadMamba(JsonReader& reader, ModelConfig& config) {
  NESTOR_ASSIGN_OR_RETURN(config.mamba_head_dim, reader.Int({"mamba_head_dim"}, 1, kHeadsMax));
  NESTOR_ASSIGN_OR_RETURN(config.ssm_state_size,
                          reader.Int({"ssm_state_size", "mamba_d_state"}, 1, kHeadsMax));
  NESTOR_ASSIGN_OR_RETURN(config.n_groups, reader.Int({"n_groups", "mamba_n_groups"}, 1, kHeadsMax));
  NESTOR_ASSIGN_OR_RETURN(config.conv_kernel, reader.Int({"conv_kernel", "mamba_d_conv"}, 2, 64));
  NESTOR_ASSIGN_OR_RETURN(config.use_conv_bias, reader.BoolOr({"use_conv_bias", "mamba_conv_bias"}, true));
  NESTOR_RETURN_IF_ERROR(ReadTimeStepLimit(reader, config));
  return ReadWidths(reader, {{"mamba_num_heads"}, LayerKind::kMamba, &LayerShape::mamba_heads, kHeadsMax},
                    config.full.layers);
}

absl::Status ReadAttention(JsonReader& reader, ModelConfig& config) {
  NESTOR_ASSIGN_OR_RETURN(config.num_key_value_heads, reader.Int({"num_key_value_heads"}, 1, kHeadsMax));
  NESTOR_ASSIGN_OR_RETURN(config.head_dim, reader.Int({"head_dim", "attention_head_dim"}, 1, kHeadsMax));
  return ReadWidths(reader,
                    {{"num_attention_heads"}, LayerKind::kAttention, &LayerShape::query_heads, kHeadsMax},
                    config.full.layers);
}

absl::Status ReadExpertCounts(JsonReader& reader, std::vector<LayerShape>& layers) {
  NESTOR_RETURN_IF_ERROR(ReadWidths(
      reader, {{"n_routed_experts"}, LayerKind::kMoe, &LayerShape::routed_experts, kExpertsMax}, layers));
  int64_t all = 0;
  for (const LayerShape& layer : layers) all += layer.routed_experts;
  if (all <= kAllExpertsMax) return absl::OkStatus();
  return reader.Error("n_routed_experts", StrCat("at most ", kAllExpertsMax, " experts in all layers"), all);
}

absl::Status ReadSharedExperts(JsonReader& reader, std::vector<LayerShape>& layers) {
  NESTOR_ASSIGN_OR_RETURN(const int count, reader.Int({"n_shared_experts"}, 0, 64));
  if (count == 0) return absl::OkStatus();
  NESTOR_RETURN_IF_ERROR(ReadWidths(reader,
                                    {{"moe_shared_expert_intermediate_size"},
                                     LayerKind::kMoe,
                                     &LayerShape::shared_expert_width,
                                     kWidthMax / count},
                                    layers));
  for (LayerShape& layer : layers) layer.shared_expert_width *= count;
  return absl::OkStatus();
}

absl::Status ReadMoe(JsonReader& reader, ModelConfig& config) {
  std::vector<LayerShape>& layers = config.full.layers;
  NESTOR_ASSIGN_OR_RETURN(config.num_experts_per_tok, reader.Int({"num_experts_per_tok"}, 1, kExpertsMax));
  NESTOR_ASSIGN_OR_RETURN(config.n_group, reader.IntOr({"n_group"}, 1, kExpertsMax, 1));
  NESTOR_ASSIGN_OR_RETURN(config.topk_group, reader.IntOr({"topk_group"}, 1, config.n_group, 1));
  NESTOR_ASSIGN_OR_RETURN(config.norm_topk_prob, reader.BoolOr({"norm_topk_prob"}, true));
  NESTOR_ASSIGN_OR_RETURN(const double scale, reader.NumberOr({"routed_scaling_factor"}, 0, 1e6, 1));
  config.routed_scaling_factor = static_cast<float>(scale);
  NESTOR_ASSIGN_OR_RETURN(config.moe_latent_size, reader.IntOr({"moe_latent_size"}, 1, kWidthMax, 0));
  NESTOR_RETURN_IF_ERROR(ReadExpertCounts(reader, layers));
  NESTOR_RETURN_IF_ERROR(ReadWidths(
      reader, {{"moe_intermediate_size"}, LayerKind::kMoe, &LayerShape::expert_width, kWidthMax}, layers));
  return ReadSharedExperts(reader, layers);
}

bool HasKind(const ModelConfig& config, LayerKind kind) {
  return std::any_of(config.full.layers.begin(), config.full.layers.end(),
                     [&](const LayerShape& layer) { return layer.kind == kind; });
}

absl::Status ReadTokenIds(JsonReader& reader, ModelConfig& config) {
  const auto is_id = [&](const Json& value) { return IsInt(value, 0, config.vocab_size - 1); };
  const std::string id = StrCat("a token id from 0 to ", config.vocab_size - 1);
  if (const Json* const bos = reader.Find({"bos_token_id"})) {
    if (!is_id(*bos)) return reader.Error("bos_token_id", id, *bos);
    config.bos_token_id = bos->get<int>();
  }
  if (const Json* const eos = reader.Find({"eos_token_id"})) {
    const Json list = eos->is_array() ? *eos : Json::array({*eos});
    if (!std::all_of(list.begin(), list.end(), is_id)) {
      return reader.Error("eos_token_id", id + ", or a list of them", *eos);
    }
    config.eos_token_ids = list.get<std::vector<int>>();
  }
  return absl::OkStatus();
}

}  // namespace

char LayerLetter(LayerKind kind) {
  switch (kind) {
    case LayerKind::kMamba:
      return 'M';
    case LayerKind::kAttention:
      return '*';
    case LayerKind::kMlp:
      return '-';
    case LayerKind::kMoe:
      return 'E';
  }
  return '?';
}

absl::StatusOr<ModelConfig> ParseModelConfig(const Json& json, std::string_view source) {
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(json, source));
  NESTOR_RETURN_IF_ERROR(CheckFamily(reader));
  NESTOR_RETURN_IF_ERROR(RefuseUnsupported(reader));
  ModelConfig config;
  config.full.name = "full";
  NESTOR_ASSIGN_OR_RETURN(config.full.layers, ReadLayerList(reader));
  NESTOR_ASSIGN_OR_RETURN(config.vocab_size, reader.Int({"vocab_size"}, 1, kVocabularyMax));
  NESTOR_ASSIGN_OR_RETURN(config.full.hidden_size, reader.Int({"hidden_size"}, 1, kWidthMax));
  NESTOR_ASSIGN_OR_RETURN(config.max_position_embeddings,
                          reader.Int({"max_position_embeddings"}, 1, kContextMax));
  NESTOR_ASSIGN_OR_RETURN(config.tie_word_embeddings, reader.BoolOr({"tie_word_embeddings"}, false));
  NESTOR_ASSIGN_OR_RETURN(
      const double eps, reader.NumberOr({"layer_norm_epsilon", "norm_eps", "rms_norm_eps"}, 1e-30, 1, 1e-5));
  config.norm_eps = static_cast<float>(eps);
  if (HasKind(config, LayerKind::kMamba)) NESTOR_RETURN_IF_ERROR(ReadMamba(reader, config));
  if (HasKind(config, LayerKind::kAttention)) NESTOR_RETURN_IF_ERROR(ReadAttention(reader, config));
  if (HasKind(config, LayerKind::kMoe)) NESTOR_RETURN_IF_ERROR(ReadMoe(reader, config));
  NESTOR_RETURN_IF_ERROR(
      ReadWidths(reader, {{"intermediate_size"}, LayerKind::kMlp, &LayerShape::mlp_width, kWidthMax},
                 config.full.layers));
  NESTOR_RETURN_IF_ERROR(CheckDivisions(config, config.full, source));
  NESTOR_RETURN_IF_ERROR(ReadTokenIds(reader, config));
  return config;
}

absl::Status ApplyGenerationConfig(const Json& json, std::string_view source, ModelConfig& config) {
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(json, source));
  NESTOR_RETURN_IF_ERROR(ReadTokenIds(reader, config));
  NESTOR_ASSIGN_OR_RETURN(config.do_sample, reader.BoolOr({"do_sample"}, false));
  if (reader.Find({"temperature"})) {
    NESTOR_ASSIGN_OR_RETURN(const double temperature, reader.Number({"temperature"}, 0, 100));
    config.temperature = static_cast<float>(temperature);
  }
  if (const Json* const top_p = reader.Find({"top_p"})) {
    if (*top_p == 0) return reader.Error("top_p", "a number above 0, at most 1", *top_p);
    NESTOR_ASSIGN_OR_RETURN(config.top_p, reader.Number({"top_p"}, 0, 1));
  }
  if (reader.Find({"top_k"})) {
    NESTOR_ASSIGN_OR_RETURN(config.top_k, reader.Int({"top_k"}, 0, kVocabularyMax));
  }
  return absl::OkStatus();
}

}  // namespace nestor
