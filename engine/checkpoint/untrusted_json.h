// JSON files that come with a checkpoint and that nobody vouches for.
#ifndef NESTOR_ENGINE_CHECKPOINT_UNTRUSTED_JSON_H_
#define NESTOR_ENGINE_CHECKPOINT_UNTRUSTED_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/base/json.h"

namespace nestor {

// As ParseJson, but refuses nesting beyond any real file: copying or printing a value recurses, so deep
// nesting would exhaust the stack later.
absl::StatusOr<Json> ParseUntrustedJson(std::string_view text, std::string_view source);

// Reads and parses a file.
absl::StatusOr<Json> ReadUntrustedJson(const std::string& path);

// The same for files that Python's json module wrote, config.json among them: its bare word Infinity, which
// JSON does not have, is read as the string "Infinity". NaN stays an error.
absl::StatusOr<Json> ReadPythonJson(const std::string& path);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_UNTRUSTED_JSON_H_
