// JSON files as absl::Status citizens: nlohmann/json without its exceptions.
#ifndef NESTOR_ENGINE_BASE_JSON_H_
#define NESTOR_ENGINE_BASE_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace nestor {

using Json = nlohmann::json;

// INVALID_ARGUMENT naming `source` (a path, for the message) and the byte where the text stops being JSON.
// NaN and Infinity are not JSON and are refused.
absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view source);

// Reads and parses a file.
absl::StatusOr<Json> ReadJsonFile(const std::string& path);

// A JSON value cut to a length fit for an error message.
std::string JsonExcerpt(const Json& value);

}  // namespace nestor

#endif  // NESTOR_ENGINE_BASE_JSON_H_
