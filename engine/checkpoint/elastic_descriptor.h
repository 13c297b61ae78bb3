// elastic.json ("nestor.elastic/1", docs/ELASTIC.md): the nested submodels of a checkpoint.
#ifndef NESTOR_ENGINE_CHECKPOINT_ELASTIC_DESCRIPTOR_H_
#define NESTOR_ENGINE_CHECKPOINT_ELASTIC_DESCRIPTOR_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/handoff.h"
#include "engine/base/json.h"
#include "engine/checkpoint/model_config.h"

namespace nestor {

// The text that opens and closes thinking, as the model was trained: {"<think>\n", "\n</think>"}.
struct ThinkingMarkers {
  std::string open;
  std::string close;
};

// Measured accuracy of one way to answer.
struct QualityRow {
  std::optional<std::string> thinking_submodel;  // absent: answered without thinking
  std::string answer_submodel;
  std::optional<int> max_thinking_tokens;  // absent: no limit
  Handoff handoff = Handoff::kRecompute;
  double accuracy = 0;  // 0…1
  double mean_thinking_tokens = 0;
  std::map<std::string, double> accuracy_by_task;
};

struct ElasticDescriptor {
  std::vector<SubmodelShape> submodels;  // as listed: at least one, names unique
  Handoff default_handoff = Handoff::kRecompute;
  bool transplant_allowed = false;  // what the file says; see TransplantObstacle for what the shapes allow
  std::optional<ThinkingMarkers> thinking;
  std::string quality_metric;  // "" where nothing was measured
  std::vector<QualityRow> quality;
};

// Resolves every axis against config.full. Refuses unknown keys, a slice larger than its parent, head counts
// that do not divide into groups, lists of the wrong length, numbers where an axis does not apply, fewer
// experts than a token needs, transplant between different state shapes, quality rows naming unknown
// submodels.
absl::StatusOr<ElasticDescriptor> ParseElasticDescriptor(const Json& json, std::string_view source,
                                                         const ModelConfig& config);

// The descriptor of a checkpoint without elastic.json: one submodel, `full`.
ElasticDescriptor OrdinaryDescriptor(const ModelConfig& config);

// Why state of one submodel cannot be used by the other ("layer 2: 6 Mamba heads against 4"); nullopt where
// it can. Transplant needs equal state shapes: same Mamba heads, same attention heads, same layers.
std::optional<std::string> TransplantObstacle(const SubmodelShape& from, const SubmodelShape& to);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_ELASTIC_DESCRIPTOR_H_
