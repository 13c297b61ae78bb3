#include "engine/checkpoint/quantised_weights.h"

#include "engine/base/file.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/untrusted_json.h"

namespace nestor {
namespace {

// The algorithm's name, wherever ModelOpt puts it: {"quantization": {"quant_algo": …}} or {"quant_algo": …}.
std::string Algorithm(const Json& json) {
  const Json& inner = json.is_object() && json.contains("quantization") ? json["quantization"] : json;
  for (const char* key : {"quant_algo", "quant_method"}) {
    if (inner.is_object() && inner.contains(key) && inner[key].is_string()) {
      return inner[key].get<std::string>() + " weights";
    }
  }
  return "quantised weights";
}

}  // namespace

absl::Status RefuseQuantisedConfig(const std::string& directory, const Json& config) {
  const Json section = config.is_object() ? config.value("quantization_config", Json()) : Json();
  if (!section.is_null()) {
    return QuantisedError(directory + "/config.json: key 'quantization_config'", Algorithm(section));
  }
  const std::string side_file = directory + "/hf_quant_config.json";
  if (!FileExists(side_file)) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(const Json json, ReadUntrustedJson(side_file));
  return QuantisedError(side_file, Algorithm(json));
}

absl::Status QuantisedError(std::string_view source, std::string_view found) {
  return absl::UnimplementedError(StrCat(source, ": expected BF16, F16 or F32 weights, found ", found,
                                         "; 8-bit and 4-bit weights are not served yet"));
}

}  // namespace nestor
