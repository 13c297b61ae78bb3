// The safetensors files of a checkpoint folder.
#ifndef NESTOR_ENGINE_CHECKPOINT_WEIGHT_FILES_H_
#define NESTOR_ENGINE_CHECKPOINT_WEIGHT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"

namespace nestor {

// Maps the shards of model.safetensors.index.json where there is one, and then only those; else
// model.safetensors. Shards must lie in the folder itself and hold exactly the tensors that the index gives
// them, together `metadata.total_size` bytes where the index says so. NOT_FOUND names what was looked for.
absl::StatusOr<std::vector<SafetensorsFile>> OpenWeightFiles(const std::string& directory);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_WEIGHT_FILES_H_
