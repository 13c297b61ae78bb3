// Writes one submodel as an ordinary Hugging Face checkpoint of its own.
#ifndef NESTOR_ENGINE_CHECKPOINT_SLICE_H_
#define NESTOR_ENGINE_CHECKPOINT_SLICE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "engine/checkpoint/checkpoint.h"

namespace nestor {

// Writes config.json (the submodel's dimensions; active layers renumbered), model.safetensors (stored dtypes,
// values copied bit for bit), copies of the tokenizer, template and generation files, and of elastic.json
// what concerns this submodel (name, thinking markers, measured quality; Hugging Face does not read it) into
// `output_directory`, which must not exist or be empty. A failure leaves no such folder. A submodel whose
// layers differ among each other is written with per-layer lists in config.json, which Nestor reads and
// Hugging Face does not. NOT_FOUND for an unknown submodel, naming those that exist.
absl::Status WriteSlice(const Checkpoint& checkpoint, std::string_view submodel,
                        const std::string& output_directory);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_SLICE_H_
