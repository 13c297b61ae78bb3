// Fields of tokenizer.json, and errors that name them.
#ifndef NESTOR_ENGINE_TEXT_TOKENIZER_JSON_H_
#define NESTOR_ENGINE_TEXT_TOKENIZER_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/base/json.h"

namespace nestor {

// The member of an object; null where there is none or `object` is not one.
const Json& JsonField(const Json& object, const char* key);

// INVALID_ARGUMENT and UNIMPLEMENTED: "<source>: key '<key>': expected <expected>, found <found>".
absl::Status BrokenField(std::string_view source, std::string_view key, std::string_view expected,
                         const Json& found);
absl::Status UnsupportedField(std::string_view source, std::string_view key, std::string_view expected,
                              const Json& found);

// A member that is true or false; `absent` where it is missing or null. `name` is the key for the error.
absl::StatusOr<bool> BoolField(const Json& object, const char* key, bool absent, std::string_view source,
                               std::string_view name);

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_TOKENIZER_JSON_H_
