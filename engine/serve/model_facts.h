// What the router must know of a checkpoint.
#ifndef NESTOR_ENGINE_SERVE_MODEL_FACTS_H_
#define NESTOR_ENGINE_SERVE_MODEL_FACTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/route/router.h"
#include "engine/text/tokenizer.h"

namespace nestor {

// The facts of the checkpoint alone; the engine adds its limits (context, default output, closing tokens).
ModelFacts DescribeModel(const Checkpoint& checkpoint);

// From elastic.json; else the family's "<think>\n" and "\n</think>" where the tokenizer has both tokens; else
// absent.
std::optional<ThinkingMarkers> FindThinkingMarkers(const Checkpoint& checkpoint, const Tokenizer& tokenizer);

// The tokens of the close sequence. INVALID_ARGUMENT where its last token is not one that by itself says that
// thinking is over: the phase machine watches for that token.
absl::StatusOr<std::vector<int32_t>> CloseTokens(const ThinkingMarkers& markers, const Tokenizer& tokenizer);

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_MODEL_FACTS_H_
