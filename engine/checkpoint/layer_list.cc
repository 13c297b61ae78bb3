#include "engine/checkpoint/layer_list.h"

#include <optional>
#include <string>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

using LayerKinds = std::vector<LayerKind>;

constexpr std::string_view kPatternKey = "hybrid_override_pattern";

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

absl::StatusOr<LayerKinds> KindsOfPattern(const Json& pattern, const JsonReader& reader) {
  if (!pattern.is_string()) return reader.Error(kPatternKey, "a string of the letters M, E, *, -", pattern);
  LayerKinds kinds;
  for (const char letter : pattern.get<std::string>()) {
    const std::optional<LayerKind> kind = KindOfLetter(letter);
    if (!kind) {
      return reader.Error(kPatternKey, StrCat("a letter of M, E, *, - for layer ", kinds.size()),
                          std::string(1, letter));
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

absl::StatusOr<LayerKinds> KindsOfWords(std::string_view key, const Json& words, const JsonReader& reader) {
  if (!words.is_array()) return reader.Error(key, "a list of layer types", words);
  LayerKinds kinds;
  for (const Json& word : words) {
    const std::optional<LayerKind> kind = KindOfWord(word);
    if (!kind) {
      return reader.Error(key, StrCat("mamba, attention, mlp or moe for layer ", kinds.size()), word);
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

absl::Status CheckCount(const LayerKinds& kinds, JsonReader& reader) {
  constexpr int kLayersMax = 4096;
  const Json* const count = reader.Find({"num_hidden_layers"});
  if (count != nullptr && *count != kinds.size()) {
    return reader.Error("num_hidden_layers", StrCat(kinds.size(), ", the number of layers listed"), *count);
  }
  if (kinds.empty() || kinds.size() > kLayersMax) {
    return reader.Error("num_hidden_layers", StrCat("1 to ", kLayersMax), kinds.size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<LayerShape>> ReadLayerList(JsonReader& reader) {
  std::optional<LayerKinds> kinds;
  for (const std::string_view key :
       {kPatternKey, std::string_view("layers_block_type"), std::string_view("layer_types")}) {
    const Json* const value = reader.Find({key});
    if (value == nullptr) continue;
    NESTOR_ASSIGN_OR_RETURN(LayerKinds found, key == kPatternKey ? KindsOfPattern(*value, reader)
                                                                 : KindsOfWords(key, *value, reader));
    if (kinds && *kinds != found) return reader.Error(key, "the layers of the other spelling", *value);
    kinds = std::move(found);
  }
  if (!kinds) return reader.Missing(kPatternKey, "the kinds of all layers");
  NESTOR_RETURN_IF_ERROR(CheckCount(*kinds, reader));
  std::vector<LayerShape> layers(kinds->size());
  for (size_t i = 0; i < layers.size(); ++i) layers[i].kind = (*kinds)[i];
  return layers;
}

}  // namespace nestor
