// What is in a checkpoint: layers, tensors, and what each submodel keeps, weighs and carries.
#ifndef NESTOR_TOOLS_CHECKPOINT_REPORT_H_
#define NESTOR_TOOLS_CHECKPOINT_REPORT_H_

#include <string>

#include "engine/base/json.h"
#include "engine/checkpoint/checkpoint.h"

namespace nestor {

// Tables for people: a line a layer with the widths of every submodel, a line a submodel.
std::string CheckpointReport(const Checkpoint& checkpoint);

// The same for programs, with every tensor. Keys say their units: `weight_bytes`,
// `state_bytes_per_sequence`.
Json CheckpointReportJson(const Checkpoint& checkpoint);

}  // namespace nestor

#endif  // NESTOR_TOOLS_CHECKPOINT_REPORT_H_
