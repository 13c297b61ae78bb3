// Widths that may differ from layer to layer, as config.json and elastic.json write them: one number, or a
// list with one value a layer, null where the axis does not apply.
#ifndef NESTOR_ENGINE_CHECKPOINT_LAYER_WIDTHS_H_
#define NESTOR_ENGINE_CHECKPOINT_LAYER_WIDTHS_H_

#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/json_reader.h"
#include "engine/checkpoint/model_config.h"

namespace nestor {

// One axis: its key, the kind of layer that has it, and where it is kept.
struct WidthAxis {
  std::string_view key;
  LayerKind kind;
  int LayerShape::*field;
  int most;
};

// Reads the axis into every layer of its kind. Without such layers the key is not needed and not looked at
// (config.json of real models keeps it). A list may also have one value for each layer of the kind alone.
absl::Status ReadWidths(JsonReader& reader, const WidthAxis& axis, std::vector<LayerShape>& layers);

// Reads the axis if the key is there, into the layers of its kind, none wider than in `parent`. A list needs
// one entry a layer, null or the parent's value where the layer is not of the kind or not cut.
absl::Status CutWidths(JsonReader& reader, const WidthAxis& axis, const std::vector<LayerShape>& parent,
                       std::vector<LayerShape>& layers);

// What divides what: Mamba heads by groups, query heads by KV heads, experts by router groups, each large
// enough, with enough experts for every token.
absl::Status CheckDivisions(const ModelConfig& config, const SubmodelShape& submodel,
                            std::string_view source);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_LAYER_WIDTHS_H_
