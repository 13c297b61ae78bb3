#include "engine/text/tokenizer_json.h"

#include <string>

#include "engine/base/str_cat.h"

namespace nestor {
namespace {

std::string Message(std::string_view source, std::string_view key, std::string_view expected,
                    const Json& found) {
  return StrCat(source, ": key '", key, "': expected ", expected, ", found ", JsonExcerpt(found));
}

}  // namespace

const Json& JsonField(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found != object.end() ? *found : kNothing;
}

absl::Status BrokenField(std::string_view source, std::string_view key, std::string_view expected,
                         const Json& found) {
  return absl::InvalidArgumentError(Message(source, key, expected, found));
}

absl::Status UnsupportedField(std::string_view source, std::string_view key, std::string_view expected,
                              const Json& found) {
  return absl::UnimplementedError(Message(source, key, expected, found));
}

absl::StatusOr<bool> BoolField(const Json& object, const char* key, bool absent, std::string_view source,
                               std::string_view name) {
  const Json& field = JsonField(object, key);
  if (field.is_null()) return absent;
  if (!field.is_boolean()) return BrokenField(source, name, "true or false", field);
  return field.get<bool>();
}

}  // namespace nestor
