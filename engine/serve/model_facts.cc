#include "engine/serve/model_facts.h"

#include "absl/strings/ascii.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/footprint.h"

namespace nestor {

ModelFacts DescribeModel(const Checkpoint& checkpoint) {
  const ElasticDescriptor& elastic = checkpoint.elastic();
  ModelFacts facts;
  facts.default_handoff = elastic.default_handoff;
  for (const SubmodelShape& submodel : elastic.submodels) {
    const Footprint footprint = FootprintOf(checkpoint, submodel);
    facts.submodels.push_back({submodel.name, footprint.total_parameters, footprint.active_parameters,
                               footprint.weight_bytes, footprint.state_bytes, footprint.kv_bytes_per_token});
    std::vector<std::string>& obstacles = facts.transplant_obstacles.emplace_back();
    for (const SubmodelShape& other : elastic.submodels) {
      std::optional<std::string> obstacle = TransplantObstacle(submodel, other);
      if (!obstacle && !elastic.transplant_allowed) obstacle = "elastic.json does not allow it";
      obstacles.push_back(obstacle.value_or(""));
    }
  }
  return facts;
}

std::optional<ThinkingMarkers> FindThinkingMarkers(const Checkpoint& checkpoint, const Tokenizer& tokenizer) {
  if (checkpoint.elastic().thinking) return checkpoint.elastic().thinking;
  if (!tokenizer.TokenId("<think>") || !tokenizer.TokenId("</think>")) return std::nullopt;
  return ThinkingMarkers{"<think>\n", "\n</think>"};
}

absl::StatusOr<std::vector<int32_t>> CloseTokens(const ThinkingMarkers& markers, const Tokenizer& tokenizer) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer.Encode(markers.close));
  const std::string word(absl::StripAsciiWhitespace(markers.close));
  if (tokens.empty() || tokenizer.TokenId(word) != tokens.back()) {
    return absl::InvalidArgumentError(
        StrCat("elastic.json: key 'thinking.close': expected text that ends in one token of "
               "the tokenizer, found '",
               markers.close, "', which is ", tokens.size(), " tokens"));
  }
  return tokens;
}

}  // namespace nestor
