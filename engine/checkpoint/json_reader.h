// Typed reading of a JSON object, with errors that say where, what was expected and what was found, and a
// record of the keys that were read, so that none is silently ignored.
#ifndef NESTOR_ENGINE_CHECKPOINT_JSON_READER_H_
#define NESTOR_ENGINE_CHECKPOINT_JSON_READER_H_

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/json.h"

namespace nestor {

// Reads one object. `json` must outlive the reader. Every getter takes a name and its aliases; the first that
// is there and not null counts.
class JsonReader {
 public:
  using Keys = std::initializer_list<std::string_view>;

  // `source` and `path` are for messages: "config.json", "submodels[1].".
  static absl::StatusOr<JsonReader> Create(const Json& json, std::string_view source,
                                           std::string_view path = "");

  // nullptr where none of the keys is there.
  const Json* Find(Keys keys) { return FindMember(keys).second; }

  // Whole numbers from `least` to `most`.
  absl::StatusOr<int> Int(Keys keys, int least, int most);
  absl::StatusOr<int> IntOr(Keys keys, int least, int most, int fallback);
  // Numbers from `least` to `most`.
  absl::StatusOr<double> Number(Keys keys, double least, double most);
  absl::StatusOr<double> NumberOr(Keys keys, double least, double most, double fallback);
  absl::StatusOr<bool> BoolOr(Keys keys, bool fallback);
  absl::StatusOr<std::string> StringOr(Keys keys, std::string_view fallback);

  // INVALID_ARGUMENT "config.json: key 'hidden_size': expected a whole number from 1 to 16777216, found -3".
  absl::Status Error(std::string_view key, std::string_view expected, const Json& found) const;
  absl::Status Missing(std::string_view key, std::string_view expected) const;
  // The same as UNIMPLEMENTED: a valid value that this engine does not run.
  absl::Status Unsupported(std::string_view key, std::string_view expected, const Json& found) const;

  // INVALID_ARGUMENT naming a key that nobody asked for.
  absl::Status CheckAllRead() const;

 private:
  JsonReader(const Json& json, std::string_view source, std::string_view path)
      : json_(&json), source_(source), path_(path) {}

  // The spelling that is there, the first of the keys where none is, and its value.
  std::pair<std::string_view, const Json*> FindMember(Keys keys);
  std::string Message(std::string_view key, std::string_view expected, std::string_view found) const;

  const Json* json_;
  std::string source_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

// Any JSON value as a whole number from `least` to `most`.
bool IsInt(const Json& value, int least, int most);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_JSON_READER_H_
