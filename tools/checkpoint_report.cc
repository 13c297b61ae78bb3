#include "tools/checkpoint_report.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/footprint.h"
#include "engine/checkpoint/tensor_schema.h"

namespace nestor {
namespace {

std::string_view KindWord(LayerKind kind) {
  switch (kind) {
    case LayerKind::kMamba:
      return "mamba";
    case LayerKind::kAttention:
      return "attention";
    case LayerKind::kMlp:
      return "mlp";
    case LayerKind::kMoe:
      return "moe";
  }
  return "";
}

// The widths a submodel may cut, in few characters.
std::string WidthWords(const LayerShape& layer) {
  if (!layer.active) return "skipped";
  switch (layer.kind) {
    case LayerKind::kMamba:
      return StrCat(layer.mamba_heads, " heads");
    case LayerKind::kAttention:
      return StrCat(layer.query_heads, " heads");
    case LayerKind::kMlp:
      return StrCat(layer.mlp_width);
    case LayerKind::kMoe:
      return StrCat(layer.routed_experts, "x", layer.expert_width,
                    layer.shared_expert_width > 0 ? StrCat(" + ", layer.shared_expert_width) : "");
  }
  return "";
}

// Tensors and elements, of one layer or of what lies outside layers.
struct TensorSum {
  int tensors = 0;
  int64_t parameters = 0;
};

// By layer, -1 for embeddings, final norm and head.
std::map<int, TensorSum> SumByLayer(const Checkpoint& checkpoint) {
  std::map<int, TensorSum> sums;
  for (const TensorSpec& spec : TensorSchema(checkpoint.config())) {
    TensorSum& sum = sums[spec.layer];
    ++sum.tensors;
    sum.parameters += checkpoint.tensor(spec.name).element_count();
  }
  return sums;
}

std::string Summary(const Checkpoint& checkpoint) {
  struct DTypeSum {
    int tensors = 0;
    int64_t bytes = 0;
  };
  std::map<DType, DTypeSum> sums;
  for (const TensorSpec& spec : TensorSchema(checkpoint.config())) {
    const Tensor& tensor = checkpoint.tensor(spec.name);
    ++sums[tensor.dtype].tensors;
    sums[tensor.dtype].bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  std::string text =
      StrCat(checkpoint.directory(), ": ", checkpoint.config().num_layers(), " layers, vocabulary ",
             checkpoint.config().vocab_size, ", context ", checkpoint.config().max_position_embeddings, "\n");
  for (const auto& [dtype, sum] : sums) {
    StrAppend(&text, sum.tensors, " tensors ", DTypeName(dtype), ", ", sum.bytes, " bytes\n");
  }
  return text;
}

std::string LayerTable(const Checkpoint& checkpoint) {
  const std::vector<SubmodelShape>& submodels = checkpoint.elastic().submodels;
  std::string text = absl::StrFormat("%5s %-9s %7s %14s", "layer", "kind", "tensors", "parameters");
  for (const SubmodelShape& submodel : submodels) text += absl::StrFormat("  %14s", submodel.name);
  text += "\n";
  for (const auto& [layer, sum] : SumByLayer(checkpoint)) {
    const bool outside = layer < 0;
    const std::string kind(outside ? "outside" : KindWord(submodels[0].layers[layer].kind));
    text +=
        absl::StrFormat("%5s %-9s %7d %14d", outside ? "" : StrCat(layer), kind, sum.tensors, sum.parameters);
    for (const SubmodelShape& submodel : submodels) {
      text += absl::StrFormat("  %14s", outside ? "" : WidthWords(submodel.layers[layer]));
    }
    text += "\n";
  }
  return text;
}

std::string SubmodelTable(const Checkpoint& checkpoint) {
  std::string text =
      absl::StrFormat("%-14s %6s %6s %14s %14s %14s %14s %14s\n", "submodel", "hidden", "layers",
                      "parameters", "active", "weight bytes", "state bytes", "KV bytes/token");
  for (const SubmodelShape& submodel : checkpoint.elastic().submodels) {
    const Footprint footprint = FootprintOf(checkpoint, submodel);
    const auto active = std::count_if(submodel.layers.begin(), submodel.layers.end(),
                                      [](const LayerShape& layer) { return layer.active; });
    text += absl::StrFormat("%-14s %6d %6d %14d %14d %14d %14d %14d\n", submodel.name, submodel.hidden_size,
                            active, footprint.total_parameters, footprint.active_parameters,
                            footprint.weight_bytes, footprint.state_bytes, footprint.kv_bytes_per_token);
  }
  return text;
}

Json LayerJson(const LayerShape& layer, int index) {
  Json json = {{"index", index}, {"kind", std::string(KindWord(layer.kind))}, {"active", layer.active}};
  const auto add = [&](const char* key, LayerKind kind, int width) {
    if (layer.kind == kind) json[key] = width;
  };
  add("mamba_num_heads", LayerKind::kMamba, layer.mamba_heads);
  add("num_attention_heads", LayerKind::kAttention, layer.query_heads);
  add("intermediate_size", LayerKind::kMlp, layer.mlp_width);
  add("n_routed_experts", LayerKind::kMoe, layer.routed_experts);
  add("moe_intermediate_size", LayerKind::kMoe, layer.expert_width);
  add("moe_shared_expert_intermediate_size", LayerKind::kMoe, layer.shared_expert_width);
  return json;
}

Json SubmodelJson(const Checkpoint& checkpoint, const SubmodelShape& submodel) {
  const Footprint footprint = FootprintOf(checkpoint, submodel);
  Json layers = Json::array();
  for (int i = 0; i < checkpoint.config().num_layers(); ++i)
    layers.push_back(LayerJson(submodel.layers[i], i));
  return {{"name", submodel.name},
          {"hidden_size", submodel.hidden_size},
          {"layers", layers},
          {"total_parameters", footprint.total_parameters},
          {"active_parameters", footprint.active_parameters},
          {"weight_bytes", footprint.weight_bytes},
          {"state_bytes_per_sequence", footprint.state_bytes},
          {"kv_bytes_per_token", footprint.kv_bytes_per_token}};
}

}  // namespace

std::string CheckpointReport(const Checkpoint& checkpoint) {
  return StrCat(Summary(checkpoint), "\n", LayerTable(checkpoint), "\n", SubmodelTable(checkpoint));
}

Json CheckpointReportJson(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  Json layers = Json::array();
  Json submodels = Json::array();
  Json tensors = Json::array();
  for (const auto& [layer, sum] : SumByLayer(checkpoint)) {
    if (layer < 0) continue;
    layers.push_back({{"index", layer},
                      {"kind", std::string(KindWord(config.full.layers[layer].kind))},
                      {"tensors", sum.tensors},
                      {"parameters", sum.parameters}});
  }
  for (const SubmodelShape& submodel : checkpoint.elastic().submodels) {
    submodels.push_back(SubmodelJson(checkpoint, submodel));
  }
  for (const TensorSpec& spec : TensorSchema(config)) {
    const Tensor& tensor = checkpoint.tensor(spec.name);
    tensors.push_back(
        {{"name", spec.name}, {"dtype", std::string(DTypeName(tensor.dtype))}, {"shape", tensor.shape}});
  }
  return {{"directory", checkpoint.directory()},
          {"elastic", checkpoint.has_elastic_descriptor()},
          {"vocab_size", config.vocab_size},
          {"max_position_embeddings", config.max_position_embeddings},
          {"layers", layers},
          {"submodels", submodels},
          {"tensors", tensors}};
}

}  // namespace nestor
