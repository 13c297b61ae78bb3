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
    if (!of_kind(layers[i])) continue;
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
      return reader.Error(axis.key,
                          StrCat("null for layer ", i, ", which is '",
                                 std::string(1, LayerLetter(layers[i].kind)), "' and has no such axis"),
                          width);
    }
  }
  return applies ? absl::OkStatus() : reader.Error(axis.key, "a key of an axis that some layer has", *value);
}

absl::Status CheckDivisions(const ModelConfig& config, const SubmodelShape& submodel,
                            std::string_view source) {
  for (int index = 0; index < static_cast<int>(submodel.layers.size()); ++index) {
    const LayerShape& layer = submodel.layers[index];
    const auto error = [&](std::string_view expected, int found) {
      return absl::InvalidArgumentError(StrCat(source, ": submodel '", submodel.name, "', layer ", index,
                                               ": expected ", expected, ", found ", found));
    };
    if (layer.kind == LayerKind::kMamba && layer.mamba_heads % config.n_groups != 0) {
      return error(StrCat("mamba_num_heads to be a multiple of n_groups, ", config.n_groups),
                   layer.mamba_heads);
    }
    if (layer.kind == LayerKind::kAttention && layer.query_heads % config.num_key_value_heads != 0) {
      return error(
          StrCat("num_attention_heads to be a multiple of num_key_value_heads, ", config.num_key_value_heads),
          layer.query_heads);
    }
    if (layer.kind != LayerKind::kMoe) continue;
    if (layer.routed_experts % config.n_group != 0) {
      return error(StrCat("n_routed_experts to be a multiple of n_group, ", config.n_group),
                   layer.routed_experts);
    }
    const int reachable = layer.routed_experts / config.n_group * config.topk_group;
    if (reachable < config.num_experts_per_tok) {
      return error(StrCat("at least num_experts_per_tok, ", config.num_experts_per_tok,
                          ", experts within topk_group groups"),
                   reachable);
    }
  }
  return absl::OkStatus();
}

}  // namespace nestor
