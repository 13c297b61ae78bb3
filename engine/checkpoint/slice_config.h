// The JSON files of a slice (slice.h): config.json with the submodel's dimensions, and what is left of
// elastic.json.
#ifndef NESTOR_ENGINE_CHECKPOINT_SLICE_CONFIG_H_
#define NESTOR_ENGINE_CHECKPOINT_SLICE_CONFIG_H_

#include "absl/status/statusor.h"
#include "engine/base/json.h"
#include "engine/checkpoint/checkpoint.h"

namespace nestor {

// The parent's config.json with the submodel's layers and widths: numbers where all layers of a kind agree,
// else lists with one value a layer. Multi-token prediction is gone, as are its tensors.
absl::StatusOr<Json> SliceConfig(const Checkpoint& checkpoint, const SubmodelShape& submodel);

// The parent's elastic.json for the one submodel that is left: its name, the thinking markers, the quality
// rows that need no other submodel.
absl::StatusOr<Json> SliceDescriptor(const Checkpoint& checkpoint, const SubmodelShape& submodel);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_SLICE_CONFIG_H_
