#include "engine/checkpoint/slice_config.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/checkpoint/untrusted_json.h"

namespace nestor {
namespace {

std::vector<LayerShape> ActiveLayers(const SubmodelShape& submodel) {
  std::vector<LayerShape> layers;
  std::copy_if(submodel.layers.begin(), submodel.layers.end(), std::back_inserter(layers),
               [](const LayerShape& layer) { return layer.active; });
  return layers;
}

// Sets `key` to the widths of all layers of the kind, where there are any and they have the axis.
void SetWidths(Json& config, const char* key, const std::vector<LayerShape>& layers, LayerKind kind,
               int LayerShape::*field) {
  Json list = Json::array();
  std::optional<int> common;
  bool uniform = true;
  for (const LayerShape& layer : layers) {
    const bool applies = layer.kind == kind;
    list.push_back(applies ? Json(layer.*field) : Json());
    if (!applies) continue;
    uniform = uniform && common.value_or(layer.*field) == layer.*field;
    common = layer.*field;
  }
  if (common.value_or(0) > 0) config[key] = uniform ? Json(*common) : list;
}

// Keeps the layer list in the parent's spelling.
void SetLayers(Json& config, const SubmodelShape& submodel) {
  std::string pattern;
  for (const LayerShape& layer : ActiveLayers(submodel)) pattern += LayerLetter(layer.kind);
  config["num_hidden_layers"] = pattern.size();
  if (config.contains("hybrid_override_pattern")) config["hybrid_override_pattern"] = pattern;
  for (const char* key : {"layers_block_type", "layer_types"}) {
    if (!config.contains(key) || !config[key].is_array()) continue;
    Json kept = Json::array();
    for (size_t i = 0; i < submodel.layers.size(); ++i) {
      if (submodel.layers[i].active) kept.push_back(config[key][i]);
    }
    config[key] = kept;
  }
}

// No limit is what an absent key means; infinity above a lower limit has no JSON number, so the largest float
// stands for it.
void SetTimeStepLimit(Json& config, const ModelConfig& parsed) {
  config.erase("time_step_limit");
  config.erase("mamba_dt_limit");
  constexpr float kLargest = std::numeric_limits<float>::max();
  if (parsed.time_step_limit_min == 0 && parsed.time_step_limit_max > kLargest) return;
  config["time_step_limit"] = {parsed.time_step_limit_min, std::min(parsed.time_step_limit_max, kLargest)};
}

// Whether a quality row is about this submodel alone.
bool IsAbout(const Json& row, const std::string& name) {
  const Json thinking = row.value("thinking", Json());
  return row.value("answer", Json()) == name && (thinking.is_null() || thinking == name);
}

}  // namespace

absl::StatusOr<Json> SliceConfig(const Checkpoint& checkpoint, const SubmodelShape& submodel) {
  NESTOR_ASSIGN_OR_RETURN(Json config, ReadPythonJson(checkpoint.directory() + "/config.json"));
  const std::vector<LayerShape> layers = ActiveLayers(submodel);
  SetLayers(config, submodel);
  SetTimeStepLimit(config, checkpoint.config());
  config["hidden_size"] = submodel.hidden_size;
  SetWidths(config, "mamba_num_heads", layers, LayerKind::kMamba, &LayerShape::mamba_heads);
  SetWidths(config, "num_attention_heads", layers, LayerKind::kAttention, &LayerShape::query_heads);
  SetWidths(config, "intermediate_size", layers, LayerKind::kMlp, &LayerShape::mlp_width);
  SetWidths(config, "n_routed_experts", layers, LayerKind::kMoe, &LayerShape::routed_experts);
  SetWidths(config, "moe_intermediate_size", layers, LayerKind::kMoe, &LayerShape::expert_width);
  SetWidths(config, "moe_shared_expert_intermediate_size", layers, LayerKind::kMoe,
            &LayerShape::shared_expert_width);
  const bool shares = std::any_of(layers.begin(), layers.end(),
                                  [](const LayerShape& layer) { return layer.shared_expert_width > 0; });
  if (shares) config["n_shared_experts"] = 1;  // the width above is that of all shared experts together
  for (const char* key :
       {"num_nextn_predict_layers", "mtp_hybrid_override_pattern", "mtp_layers_block_type"}) {
    config.erase(key);
  }
  return config;
}

absl::StatusOr<Json> SliceDescriptor(const Checkpoint& checkpoint, const SubmodelShape& submodel) {
  NESTOR_ASSIGN_OR_RETURN(Json descriptor, ReadUntrustedJson(checkpoint.directory() + "/elastic.json"));
  descriptor["submodels"] = Json::array({{{"name", submodel.name}}});
  descriptor.erase("handoff");
  if (!checkpoint.elastic().quality.empty()) {
    Json& rows = descriptor["quality"]["rows"];
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const Json& row) { return !IsAbout(row, submodel.name); }),
               rows.end());
  }
  return descriptor;
}

}  // namespace nestor
