#include "engine/checkpoint/layer_widths.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

std::string RangeWords(int most) { return StrCat("a whole number from 1 to ", most); }

// One layer's value of a list or a number; `most` bounds it.
absl::Status SetWidth(const JsonReader& reader, const WidthAxis& axis, const Json& value, int layer, int most,
                      LayerShape& shape) {
  if (!IsInt(value, 1, most))
    return reader.Error(axis.key, StrCat(RangeWords(most), " for layer ", layer), value);
  shape.*axis.field = value.get<int>();
  return absl::OkStatus();
}

// A number of config.json with its key.
struct Count {
  std::string_view key;
  int value;
};

absl::Status CheckMultiple(std::string_view where, const Count& count, const Count& divisor) {
  if (count.value % divisor.value == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(where, ": expected ", count.key, " to be a multiple of ",
                                           divisor.key, ", ", divisor.value, ", found ", count.value));
}

// A router with groups ranks them by their two best experts, and every token must find enough experts.
absl::Status CheckRouting(std::string_view where, const LayerShape& layer, const ModelConfig& config) {
  NESTOR_RETURN_IF_ERROR(
      CheckMultiple(where, {"n_routed_experts", layer.routed_experts}, {"n_group", config.n_group}));
  const int group = layer.routed_experts / config.n_group;
  if (config.n_group > 1 && group < 2) {
    return absl::InvalidArgumentError(StrCat(where, ": expected n_routed_experts of at least 2 in each of ",
                                             config.n_group, " groups, found ", layer.routed_experts));
  }
  const int reachable = group * config.topk_group;
  if (reachable >= config.num_experts_per_tok) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(where, ": expected at least num_experts_per_tok, ",
                                           config.num_experts_per_tok,
                                           ", experts within topk_group groups, found ", reachable));
}

absl::Status StrayWidth(const JsonReader& reader, const WidthAxis& axis, const Json& value, size_t index,
                        const LayerShape& layer) {
  return reader.Error(axis.key,
                      StrCat("null for layer ", index, ", which is '",
                             std::string(1, LayerLetter(layer.kind)), "' and has no such axis"),
                      value);
}

}  // namespace

absl::Status ReadWidths(JsonReader& reader, const WidthAxis& axis, std::vector<LayerShape>& layers) {
  const auto of_kind = [&](const LayerShape& layer) { return layer.kind == axis.kind; };
  const size_t count = std::count_if(layers.begin(), layers.end(), of_kind);
  if (count == 0) return absl::OkStatus();
  const Json* const value = reader.Find({axis.key});
  if (value == nullptr) return reader.Missing(axis.key, RangeWords(axis.most));
  const bool is_list = value->is_array();
  if (is_list && value->size() != layers.size() && value->size() != count) {
    return reader.Error(axis.key, StrCat("a number or a list of ", layers.size(), " values, one a layer"),
                        *value);
  }
  size_t next = 0;  // of a list with one value for each layer of the kind
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!of_kind(layers[i])) {
      const bool is_stray = is_list && value->size() == layers.size() && !(*value)[i].is_null();
      if (is_stray) return StrayWidth(reader, axis, (*value)[i], i, layers[i]);
      continue;
    }
    const Json& width = !is_list ? *value : value->size() == layers.size() ? (*value)[i] : (*value)[next++];
    NESTOR_RETURN_IF_ERROR(SetWidth(reader, axis, width, static_cast<int>(i), axis.most, layers[i]));
  }
  return absl::OkStatus();
}

absl::Status CutWidths(JsonReader& reader, const WidthAxis& axis, const std::vector<LayerShape>& parent,
                       std::vector<LayerShape>& layers) {
  const Json* const value = reader.Find({axis.key});
  if (value == nullptr) return absl::OkStatus();
  if (value->is_array() && value->size() != layers.size()) {
    return reader.Error(axis.key, StrCat("a number or a list of ", layers.size(), " values, one a layer"),
                        *value);
  }
  bool applies = false;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Json& width = value->is_array() ? (*value)[i] : *value;
    const bool has_axis = layers[i].kind == axis.kind && parent[i].*axis.field > 0;
    if (has_axis && !width.is_null()) {
      NESTOR_RETURN_IF_ERROR(
          SetWidth(reader, axis, width, static_cast<int>(i), parent[i].*axis.field, layers[i]));
      applies = true;
    } else if (!has_axis && value->is_array() && !width.is_null()) {
      return StrayWidth(reader, axis, width, i, layers[i]);
    }
  }
  return applies ? absl::OkStatus() : reader.Error(axis.key, "a key of an axis that some layer has", *value);
}

absl::Status CheckDivisions(const ModelConfig& config, const SubmodelShape& submodel,
                            std::string_view source) {
  for (size_t i = 0; i < submodel.layers.size(); ++i) {
    const LayerShape& layer = submodel.layers[i];
    const std::string where = StrCat(source, ": submodel '", submodel.name, "', layer ", i);
    switch (layer.kind) {
      case LayerKind::kMamba:
        NESTOR_RETURN_IF_ERROR(
            CheckMultiple(where, {"mamba_num_heads", layer.mamba_heads}, {"n_groups", config.n_groups}));
        break;
      case LayerKind::kAttention:
        NESTOR_RETURN_IF_ERROR(CheckMultiple(where, {"num_attention_heads", layer.query_heads},
                                             {"num_key_value_heads", config.num_key_value_heads}));
        break;
      case LayerKind::kMoe:
        NESTOR_RETURN_IF_ERROR(CheckRouting(where, layer, config));
        break;
      case LayerKind::kMlp:
        break;
    }
  }
  return absl::OkStatus();
}

}  // namespace nestor
