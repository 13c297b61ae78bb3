#include "engine/checkpoint/elastic_descriptor.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/json_reader.h"
#include "engine/checkpoint/layer_widths.h"

namespace nestor {
namespace {

constexpr int kNoBound = std::numeric_limits<int>::max();  // the parent bounds what a submodel cuts

constexpr WidthAxis kAxes[] = {
    {"moe_intermediate_size", LayerKind::kMoe, &LayerShape::expert_width, kNoBound},
    {"n_routed_experts", LayerKind::kMoe, &LayerShape::routed_experts, kNoBound},
    {"moe_shared_expert_intermediate_size", LayerKind::kMoe, &LayerShape::shared_expert_width, kNoBound},
    {"intermediate_size", LayerKind::kMlp, &LayerShape::mlp_width, kNoBound},
    {"mamba_num_heads", LayerKind::kMamba, &LayerShape::mamba_heads, kNoBound},
    {"num_attention_heads", LayerKind::kAttention, &LayerShape::query_heads, kNoBound},
};

bool IsName(const std::string& name) {
  constexpr size_t kLengthMax = 64;
  return !name.empty() && name.size() <= kLengthMax &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

// `layers`: the indices of the active ones, ascending.
absl::Status ReadActiveLayers(JsonReader& reader, std::vector<LayerShape>& layers) {
  const Json* const active = reader.Find({"layers"});
  if (active == nullptr) return absl::OkStatus();
  const int last = static_cast<int>(layers.size()) - 1;
  bool good = active->is_array() && !active->empty();
  for (LayerShape& layer : layers) layer.active = false;
  int previous = -1;
  for (size_t i = 0; good && i < active->size(); ++i) {
    good = IsInt((*active)[i], previous + 1, last);
    if (!good) break;
    previous = (*active)[i].get<int>();
    layers[previous].active = true;
  }
  if (good) return absl::OkStatus();
  return reader.Error("layers", StrCat("ascending layer indices from 0 to ", last), *active);
}

absl::StatusOr<SubmodelShape> ReadSubmodel(const Json& json, std::string_view source, std::string_view path,
                                           const ModelConfig& config) {
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(json, source, path));
  SubmodelShape submodel = config.full;
  NESTOR_ASSIGN_OR_RETURN(submodel.name, reader.StringOr({"name"}, ""));
  if (!IsName(submodel.name)) {
    return reader.Error("name", "1 to 64 letters, digits, '.', '_' or '-'", submodel.name);
  }
  NESTOR_ASSIGN_OR_RETURN(submodel.hidden_size,
                          reader.IntOr({"hidden_size"}, 1, config.full.hidden_size, config.full.hidden_size));
  for (const WidthAxis& axis : kAxes) {
    NESTOR_RETURN_IF_ERROR(CutWidths(reader, axis, config.full.layers, submodel.layers));
  }
  NESTOR_RETURN_IF_ERROR(ReadActiveLayers(reader, submodel.layers));
  NESTOR_RETURN_IF_ERROR(reader.CheckAllRead());
  NESTOR_RETURN_IF_ERROR(CheckDivisions(config, submodel, source));
  return submodel;
}

absl::Status ReadSubmodels(JsonReader& reader, std::string_view source, const ModelConfig& config,
                           std::vector<SubmodelShape>& submodels) {
  constexpr size_t kSubmodelsMax = 64;
  const Json* const list = reader.Find({"submodels"});
  if (list == nullptr || !list->is_array() || list->empty() || list->size() > kSubmodelsMax) {
    return reader.Error("submodels", StrCat("a list of 1 to ", kSubmodelsMax, " submodels"),
                        list ? *list : Json());
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = StrCat("submodels[", i, "].");
    NESTOR_ASSIGN_OR_RETURN(SubmodelShape submodel, ReadSubmodel((*list)[i], source, path, config));
    for (const SubmodelShape& other : submodels) {
      if (other.name == submodel.name) return reader.Error(path + "name", "a name of its own", submodel.name);
    }
    submodels.push_back(std::move(submodel));
  }
  return absl::OkStatus();
}

absl::StatusOr<Handoff> ReadHandoffWord(JsonReader& reader, std::string_view key) {
  NESTOR_ASSIGN_OR_RETURN(const std::string word, reader.StringOr({key}, "recompute"));
  if (word == "recompute") return Handoff::kRecompute;
  if (word == "transplant") return Handoff::kTransplant;
  return reader.Error(key, "'recompute' or 'transplant'", word);
}

// The first pair of submodels between which state cannot pass, in words.
std::optional<std::string> AnyTransplantObstacle(const std::vector<SubmodelShape>& submodels) {
  for (const SubmodelShape& to : submodels) {
    const std::optional<std::string> obstacle = TransplantObstacle(submodels[0], to);
    if (obstacle) return StrCat(submodels[0].name, " and ", to.name, " differ in ", *obstacle);
  }
  return std::nullopt;
}

absl::Status ReadHandoff(JsonReader& outer, std::string_view source, ElasticDescriptor& descriptor) {
  const std::optional<std::string> obstacle = AnyTransplantObstacle(descriptor.submodels);
  descriptor.transplant_allowed = !obstacle;
  const Json* const json = outer.Find({"handoff"});
  if (json == nullptr) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(*json, source, "handoff."));
  NESTOR_ASSIGN_OR_RETURN(descriptor.default_handoff, ReadHandoffWord(reader, "default"));
  NESTOR_ASSIGN_OR_RETURN(descriptor.transplant_allowed, reader.BoolOr({"transplant"}, !obstacle));
  if (descriptor.transplant_allowed && obstacle) {
    return reader.Error("transplant", StrCat("false, as ", *obstacle), true);
  }
  if (descriptor.default_handoff == Handoff::kTransplant && !descriptor.transplant_allowed) {
    return reader.Error("default", "'recompute', as transplant is not allowed", "transplant");
  }
  return reader.CheckAllRead();
}

absl::Status ReadThinking(JsonReader& outer, std::string_view source, ElasticDescriptor& descriptor) {
  const Json* const json = outer.Find({"thinking"});
  if (json == nullptr) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(*json, source, "thinking."));
  ThinkingMarkers markers;
  NESTOR_ASSIGN_OR_RETURN(markers.open, reader.StringOr({"open"}, ""));
  NESTOR_ASSIGN_OR_RETURN(markers.close, reader.StringOr({"close"}, ""));
  if (markers.open.empty()) return reader.Missing("open", "the text that opens thinking");
  if (markers.close.empty()) return reader.Missing("close", "the text that closes thinking");
  descriptor.thinking = std::move(markers);
  return reader.CheckAllRead();
}

absl::Status ReadTasks(JsonReader& outer, std::string_view source, std::string_view path, QualityRow& row) {
  const Json* const json = outer.Find({"by_task"});
  if (json == nullptr) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(*json, source, StrCat(path, "by_task.")));
  for (const auto& [task, accuracy] : json->items()) {
    NESTOR_ASSIGN_OR_RETURN(row.accuracy_by_task[task], reader.Number({task}, 0, 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSubmodelName(JsonReader& reader, std::string_view key,
                                             const std::vector<SubmodelShape>& submodels) {
  NESTOR_ASSIGN_OR_RETURN(const std::string name, reader.StringOr({key}, ""));
  const bool known = std::any_of(submodels.begin(), submodels.end(),
                                 [&](const SubmodelShape& submodel) { return submodel.name == name; });
  if (!known) return reader.Error(key, "the name of a submodel", name);
  return name;
}

absl::StatusOr<QualityRow> ReadQualityRow(const Json& json, std::string_view source, std::string_view path,
                                          const std::vector<SubmodelShape>& submodels) {
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(json, source, path));
  QualityRow row;
  NESTOR_ASSIGN_OR_RETURN(const bool thinks, reader.BoolOr({"enable_thinking"}, true));
  const Json* const thinking = reader.Find({"thinking"});
  if (thinks) {
    NESTOR_ASSIGN_OR_RETURN(row.thinking_submodel, ReadSubmodelName(reader, "thinking", submodels));
  } else if (thinking != nullptr) {
    return reader.Error("thinking", "null, as enable_thinking is false", *thinking);
  }
  NESTOR_ASSIGN_OR_RETURN(row.answer_submodel, ReadSubmodelName(reader, "answer", submodels));
  if (reader.Find({"max_thinking_tokens"})) {
    NESTOR_ASSIGN_OR_RETURN(row.max_thinking_tokens, reader.Int({"max_thinking_tokens"}, 0, kNoBound));
  }
  NESTOR_ASSIGN_OR_RETURN(row.handoff, ReadHandoffWord(reader, "handoff"));
  NESTOR_ASSIGN_OR_RETURN(row.accuracy, reader.Number({"accuracy"}, 0, 1));
  NESTOR_ASSIGN_OR_RETURN(row.mean_thinking_tokens, reader.NumberOr({"mean_thinking_tokens"}, 0, 1e9, 0));
  NESTOR_RETURN_IF_ERROR(ReadTasks(reader, source, path, row));
  NESTOR_RETURN_IF_ERROR(reader.CheckAllRead());
  return row;
}

absl::Status ReadQuality(JsonReader& outer, std::string_view source, ElasticDescriptor& descriptor) {
  const Json* const json = outer.Find({"quality"});
  if (json == nullptr) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(*json, source, "quality."));
  NESTOR_ASSIGN_OR_RETURN(descriptor.quality_metric, reader.StringOr({"metric"}, "accuracy"));
  NESTOR_RETURN_IF_ERROR(reader.StringOr({"evaluation"}, "").status());  // where it was measured: for people
  const Json* const rows = reader.Find({"rows"});
  if (rows == nullptr || !rows->is_array()) return reader.Error("rows", "a list", rows ? *rows : Json());
  for (size_t i = 0; i < rows->size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(
        QualityRow row,
        ReadQualityRow((*rows)[i], source, StrCat("quality.rows[", i, "]."), descriptor.submodels));
    descriptor.quality.push_back(std::move(row));
  }
  return reader.CheckAllRead();
}

}  // namespace

absl::StatusOr<ElasticDescriptor> ParseElasticDescriptor(const Json& json, std::string_view source,
                                                         const ModelConfig& config) {
  constexpr std::string_view kFormat = "nestor.elastic/1";
  NESTOR_ASSIGN_OR_RETURN(JsonReader reader, JsonReader::Create(json, source));
  NESTOR_ASSIGN_OR_RETURN(const std::string format, reader.StringOr({"format"}, ""));
  if (format != kFormat) return reader.Error("format", StrCat("'", kFormat, "'"), format);
  ElasticDescriptor descriptor;
  NESTOR_RETURN_IF_ERROR(ReadSubmodels(reader, source, config, descriptor.submodels));
  NESTOR_RETURN_IF_ERROR(ReadHandoff(reader, source, descriptor));
  NESTOR_RETURN_IF_ERROR(ReadThinking(reader, source, descriptor));
  NESTOR_RETURN_IF_ERROR(ReadQuality(reader, source, descriptor));
  NESTOR_RETURN_IF_ERROR(reader.CheckAllRead());
  return descriptor;
}

ElasticDescriptor OrdinaryDescriptor(const ModelConfig& config) {
  ElasticDescriptor descriptor;
  descriptor.submodels = {config.full};
  return descriptor;
}

std::optional<std::string> TransplantObstacle(const SubmodelShape& from, const SubmodelShape& to) {
  for (size_t i = 0; i < from.layers.size(); ++i) {
    const LayerShape& a = from.layers[i];
    const LayerShape& b = to.layers[i];
    if (a.active != b.active) {
      return StrCat("layer ", i, ": ", a.active ? "active against skipped" : "skipped against active");
    }
    if (!a.active) continue;  // no state
    if (a.mamba_heads != b.mamba_heads) {
      return StrCat("layer ", i, ": ", a.mamba_heads, " Mamba heads against ", b.mamba_heads);
    }
    if (a.query_heads != b.query_heads) {
      return StrCat("layer ", i, ": ", a.query_heads, " attention heads against ", b.query_heads);
    }
  }
  return std::nullopt;
}

}  // namespace nestor
