#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/json_reader.h"
#include "engine/checkpoint/layer_widths.h"

namespace nestor {
namespace {

// Bounds far above any real model, low enough that no product of two dimensions leaves its type.
constexpr int kHeadsMax = 1 << 14;  // heads, head dimensions, groups, SSM state
constexpr int kWidthMax = 1 << 24;  // hidden, MLP and expert widths, vocabulary
constexpr int kExpertsMax = 1 << 16;
constexpr int kContextMax = 1 << 28;
constexpr int kTokenIdMax = std::numeric_limits<int>::max();

std::optional<LayerKind> KindOfLetter(char letter) {
  for (const LayerKind kind : {LayerKind::kMamba, LayerKind::kAttention, LayerKind::kMlp, LayerKind::kMoe}) {
    if (LayerLetter(kind) == letter) return kind;
  }
  return std::nullopt;
}

std::optional<LayerKind> KindOfWord(const Json& word) {
  if (word == "mamba" || word == "linear_attention") return LayerKind::kMamba;
  if (word == "attention" || word == "full_attention") return LayerKind::kAttention;
  if (word == "mlp") return LayerKind::kMlp;
  if (word == "moe") return LayerKind::kMoe;
  return std::nullopt;
}

absl::StatusOr<std::vector<LayerShape>> LayersOfPattern(const Json& pattern, const JsonReader& reader) {
  constexpr std::string_view kKey = "hybrid_override_pattern";
  if (!pattern.is_string()) return reader.Error(kKey, "a string of the letters M, E, *, -", pattern);
  std::vector<LayerShape> layers;
  for (const char letter : pattern.get<std::string>()) {
    const std::optional<LayerKind> kind = KindOfLetter(letter);
    if (!kind) {
      return reader.Error(kKey, StrCat("a letter of M, E, *, - for layer ", layers.size()),
                          std::string(1, letter));
    }
    layers.emplace_back().kind = *kind;
  }
  return layers;
}

absl::StatusOr<std::vector<LayerShape>> LayersOfWords(const Json& words, const JsonReader& reader) {
  constexpr std::string_view kKey = "layers_block_type";
  if (!words.is_array()) return reader.Error(kKey, "a list of layer types", words);
  std::vector<LayerShape> layers;
  for (const Json& word : words) {
    const std::optional<LayerKind> kind = KindOfWord(word);
    if (!kind)
      return reader.Error(kKey, StrCat("mamba, attention, mlp or moe for layer ", layers.size()), word);
    layers.emplace_back().kind = *kind;
  }
  return layers;
}

absl::StatusOr<std::vector<LayerShape>> ReadLayers(JsonReader& reader) {
  constexpr size_t kLayersMax = 4096;
  const Json* const pattern = reader.Find({"hybrid_override_pattern"});
  const Json* const words = reader.Find({"layers_block_type", "layer_types"});
  if (pattern == nullptr && words == nullptr)
    return reader.Missing("hybrid_override_pattern", "the kinds of all layers");
  NESTOR_ASSIGN_OR_RETURN(std::vector<LayerShape> layers,
                          pattern ? LayersOfPattern(*pattern, reader) : LayersOfWords(*words, reader));
  const Json* const count = reader.Find({"num_hidden_layers"});
  if (count != nullptr && *count != layers.size()) {
    return reader.Error("num_hidden_layers", StrCat(layers.size(), ", the number of layers listed"), *count);
  }
  if (layers.empty() || layers.size() > kLayersMax) {
    return reader.Error("hybrid_override_pattern", StrCat("1 to ", kLayersMax, " layers"), layers.size());
  }
  return layers;
}

// Features of the family that this engine does not run: better refused than computed wrongly.
absl::Status RefuseUnsupported(JsonReader& reader) {
  for (const char* key : {"use_bias", "mamba_proj_bias", "attention_bias", "mlp_bias"}) {
    NESTOR_ASSIGN_OR_RETURN(const bool biased, reader.BoolOr({key}, false));
    if (biased) return absl::UnimplementedError(std::string(reader.Error(key, "false", true).message()));
  }
  for (const auto& [key, word] :
       {std::pair{"mamba_hidden_act", "silu"}, std::pair{"mlp_hidden_act", "relu2"}}) {
    NESTOR_ASSIGN_OR_RETURN(const std::string activation, reader.StringOr({key}, word));
    if (activation != word)
      return absl::UnimplementedError(std::string(reader.Error(key, word, activation).message()));
  }
  for (const char* key : {"sliding_window", "block_configs"}) {
    if (const Json* const value = reader.Find({key})) {
      return absl::UnimplementedError(std::string(reader.Error(key, "null", *value).message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckModelType(JsonReader& reader) {
  const Json* const type = reader.Find({"model_type"});
  if (type == nullptr) return reader.Missing("model_type", "'nemotron_h'");
  return *type == "nemotron_h" ? absl::OkStatus() : reader.Error("model_type", "'nemotron_h'", *type);
}

absl::Status ReadTimeStepLimit(JsonReader& reader, ModelConfig& config) {
  config.time_step_limit_max = std::numeric_limits<float>::infinity();
  const Json* const limit = reader.Find({"time_step_limit", "mamba_dt_limit"});
  if (limit == nullptr) return absl::OkStatus();
  const bool is_pair = limit->is_array() && limit->size() == 2 && (*limit)[0].is_number() &&
                       ((*limit)[1].is_number() || (*limit)[1] == "Infinity");
  if (!is_pair) return reader.Error("time_step_limit", "[least, most]", *limit);
  config.time_step_limit_min = (*limit)[0].get<float>();
  if ((*limit)[1].is_number()) config.time_step_limit_max = (*limit)[1].get<float>();
  if (config.time_step_limit_min > config.time_step_limit_max) {
    return reader.Error("time_step_limit", "[least, most] with least ≤ most", *limit);
  }
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

absl::Status ReadMoe(JsonReader& reader, ModelConfig& config) {
  std::vector<LayerShape>& layers = config.full.layers;
  NESTOR_ASSIGN_OR_RETURN(config.num_experts_per_tok, reader.Int({"num_experts_per_tok"}, 1, kExpertsMax));
  NESTOR_ASSIGN_OR_RETURN(config.n_group, reader.IntOr({"n_group"}, 1, kExpertsMax, 1));
  NESTOR_ASSIGN_OR_RETURN(config.topk_group, reader.IntOr({"topk_group"}, 1, config.n_group, 1));
  NESTOR_ASSIGN_OR_RETURN(config.norm_topk_prob, reader.BoolOr({"norm_topk_prob"}, true));
  NESTOR_ASSIGN_OR_RETURN(const double scale, reader.NumberOr({"routed_scaling_factor"}, 1));
  config.routed_scaling_factor = static_cast<float>(scale);
  NESTOR_ASSIGN_OR_RETURN(config.moe_latent_size, reader.IntOr({"moe_latent_size"}, 1, kWidthMax, 0));
  NESTOR_RETURN_IF_ERROR(ReadWidths(
      reader, {{"n_routed_experts"}, LayerKind::kMoe, &LayerShape::routed_experts, kExpertsMax}, layers));
  NESTOR_RETURN_IF_ERROR(ReadWidths(
      reader, {{"moe_intermediate_size"}, LayerKind::kMoe, &LayerShape::expert_width, kWidthMax}, layers));
  NESTOR_ASSIGN_OR_RETURN(const int shared_experts, reader.IntOr({"n_shared_experts"}, 0, 64, 0));
  if (shared_experts == 0) return absl::OkStatus();
  NESTOR_RETURN_IF_ERROR(ReadWidths(reader,
                                    {{"moe_shared_expert_intermediate_size"},
                                     LayerKind::kMoe,
                                     &LayerShape::shared_expert_width,
                                     kWidthMax / shared_experts},
                                    layers));
  for (LayerShape& layer : layers) layer.shared_expert_width *= shared_experts;
  return absl::OkStatus();
}

bool HasKind(const ModelConfig& config, LayerKind kind) {
  return std::any_of(config.full.layers.begin(), config.full.layers.end(),
                     [&](const LayerShape& layer) { return layer.kind == kind; });
}

absl::Status ReadTokenIds(JsonReader& reader, ModelConfig& config) {
  const auto is_id = [](const Json& value) { return IsInt(value, 0, kTokenIdMax); };
  if (const Json* const bos = reader.Find({"bos_token_id"})) {
    if (!is_id(*bos)) return reader.Error("bos_token_id", "a token id", *bos);
    config.bos_token_id = bos->get<int>();
  }
  if (const Json* const eos = reader.Find({"eos_token_id"})) {
    const Json list = eos->is_array() ? *eos : Json::array({*eos});
    if (!std::all_of(list.begin(), list.end(), is_id)) {
      return reader.Error("eos_token_id", "a token id or a list of them", *eos);
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
  NESTOR_RETURN_IF_ERROR(CheckModelType(reader));
  NESTOR_RETURN_IF_ERROR(RefuseUnsupported(reader));
  ModelConfig config;
  config.full.name = "full";
  NESTOR_ASSIGN_OR_RETURN(config.full.layers, ReadLayers(reader));
  NESTOR_ASSIGN_OR_RETURN(config.vocab_size, reader.Int({"vocab_size"}, 1, kWidthMax));
  NESTOR_ASSIGN_OR_RETURN(config.full.hidden_size, reader.Int({"hidden_size"}, 1, kWidthMax));
  NESTOR_ASSIGN_OR_RETURN(config.max_position_embeddings,
                          reader.Int({"max_position_embeddings"}, 1, kContextMax));
  NESTOR_ASSIGN_OR_RETURN(config.tie_word_embeddings, reader.BoolOr({"tie_word_embeddings"}, false));
  NESTOR_ASSIGN_OR_RETURN(const double eps,
                          reader.NumberOr({"layer_norm_epsilon", "norm_eps", "rms_norm_eps"}, 1e-5));
  config.norm_eps = static_cast<float>(eps);
  if (eps <= 0) return reader.Error("layer_norm_epsilon", "a number above 0", eps);
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
    NESTOR_ASSIGN_OR_RETURN(const double temperature, reader.NumberOr({"temperature"}, 1));
    if (temperature < 0) return reader.Error("temperature", "0 or more", temperature);
    config.temperature = static_cast<float>(temperature);
  }
  if (reader.Find({"top_p"})) {
    NESTOR_ASSIGN_OR_RETURN(const double top_p, reader.NumberOr({"top_p"}, 1));
    if (top_p <= 0 || top_p > 1) return reader.Error("top_p", "a number above 0, at most 1", top_p);
    config.top_p = static_cast<float>(top_p);
  }
  if (reader.Find({"top_k"})) {
    NESTOR_ASSIGN_OR_RETURN(config.top_k, reader.Int({"top_k"}, 0, kWidthMax));
  }
  return absl::OkStatus();
}

}  // namespace nestor
