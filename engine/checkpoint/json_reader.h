// Typed reading of a JSON object, with errors that say where, what was expected and what was found, and a
// record of the keys that were read, so that none is silently ignored.
#ifndef NESTOR_ENGINE_CHECKPOINT_JSON_READER_H_
#define NESTOR_ENGINE_CHECKPOINT_JSON_READER_H_

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/base/json.h"

namespace nestor {

// Reads one object. `json` must outlive the reader.
class JsonReader {
 public:
  // `source` and `path` are for messages: "config.json", "submodels[1].".
  static absl::StatusOr<JsonReader> Create(const Json& json, std::string_view source,
                                           std::string_view path = "");

  // The value of the first of `keys` that is there and not null (a name and its aliases); nullptr where none
  // is.
  const Json* Find(std::initializer_list<std::string_view> keys);

  // Whole numbers from `least` to `most`.
  absl::StatusOr<int> Int(std::initializer_list<std::string_view> keys, int least, int most);
  absl::StatusOr<int> IntOr(std::initializer_list<std::string_view> keys, int least, int most, int fallback);
  absl::StatusOr<double> NumberOr(std::initializer_list<std::string_view> keys, double fallback);
  absl::StatusOr<bool> BoolOr(std::initializer_list<std::string_view> keys, bool fallback);
  absl::StatusOr<std::string> StringOr(std::initializer_list<std::string_view> keys,
                                       std::string_view fallback);

  // "config.json: key 'hidden_size': expected a positive integer, found -3"
  absl::Status Error(std::string_view key, std::string_view expected, const Json& found) const;
  absl::Status Missing(std::string_view key, std::string_view expected) const;

  // INVALID_ARGUMENT naming a key that nobody asked for.
  absl::Status CheckAllRead() const;

 private:
  JsonReader(const Json& json, std::string_view source, std::string_view path)
      : json_(&json), source_(source), path_(path) {}

  const Json* json_;
  std::string source_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

// Any JSON value as a whole number from `least` to `most`.
bool IsInt(const Json& value, int least, int most);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_JSON_READER_H_
