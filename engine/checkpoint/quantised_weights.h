// Recognises checkpoints whose weights are 8-bit or 4-bit, which this engine does not compute with.
#ifndef NESTOR_ENGINE_CHECKPOINT_QUANTISED_WEIGHTS_H_
#define NESTOR_ENGINE_CHECKPOINT_QUANTISED_WEIGHTS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "engine/base/json.h"

namespace nestor {

// UNIMPLEMENTED naming the algorithm ("FP8", "NVFP4") where `config` has a quantization_config or the folder
// an hf_quant_config.json: NVFP4 exports have the side file alone.
absl::Status RefuseQuantisedConfig(const std::string& directory, const Json& config);

// The error itself, for weights that are recognised by their element type.
absl::Status QuantisedError(std::string_view source, std::string_view found);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_QUANTISED_WEIGHTS_H_
