#include "engine/checkpoint/json_reader.h"

#include <cmath>

#include "engine/base/str_cat.h"

namespace nestor {
namespace {

std::string IntWords(int least, int most) { return StrCat("a whole number from ", least, " to ", most); }

}  // namespace

bool IsInt(const Json& value, int least, int most) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    return most >= 0 && number <= static_cast<uint64_t>(most) && static_cast<int64_t>(number) >= least;
  }
  return value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

absl::StatusOr<JsonReader> JsonReader::Create(const Json& json, std::string_view source,
                                              std::string_view path) {
  JsonReader reader(json, source, path);
  if (json.is_object()) return reader;
  return absl::InvalidArgumentError(StrCat(source, path.empty() ? "" : StrCat(": key '", path, "'"),
                                           ": expected an object, found ", JsonExcerpt(json)));
}

const Json* JsonReader::Find(std::initializer_list<std::string_view> keys) {
  const Json* found = nullptr;
  for (const std::string_view key : keys) {
    read_.emplace(key);
    const auto member = json_->find(std::string(key));
    if (found == nullptr && member != json_->end() && !member->is_null()) found = &*member;
  }
  return found;
}

absl::StatusOr<int> JsonReader::Int(std::initializer_list<std::string_view> keys, int least, int most) {
  const Json* const value = Find(keys);
  if (value == nullptr) return Missing(*keys.begin(), IntWords(least, most));
  if (!IsInt(*value, least, most)) return Error(*keys.begin(), IntWords(least, most), *value);
  return value->get<int>();
}

absl::StatusOr<int> JsonReader::IntOr(std::initializer_list<std::string_view> keys, int least, int most,
                                      int fallback) {
  if (Find(keys) == nullptr) return fallback;
  return Int(keys, least, most);
}

absl::StatusOr<double> JsonReader::NumberOr(std::initializer_list<std::string_view> keys, double fallback) {
  const Json* const value = Find(keys);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return Error(*keys.begin(), "a finite number", *value);
  }
  return value->get<double>();
}

absl::StatusOr<bool> JsonReader::BoolOr(std::initializer_list<std::string_view> keys, bool fallback) {
  const Json* const value = Find(keys);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return Error(*keys.begin(), "true or false", *value);
  return value->get<bool>();
}

absl::StatusOr<std::string> JsonReader::StringOr(std::initializer_list<std::string_view> keys,
                                                 std::string_view fallback) {
  const Json* const value = Find(keys);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return Error(*keys.begin(), "a string", *value);
  return value->get<std::string>();
}

absl::Status JsonReader::Error(std::string_view key, std::string_view expected, const Json& found) const {
  return absl::InvalidArgumentError(
      StrCat(source_, ": key '", path_, key, "': expected ", expected, ", found ", JsonExcerpt(found)));
}

absl::Status JsonReader::Missing(std::string_view key, std::string_view expected) const {
  return absl::InvalidArgumentError(
      StrCat(source_, ": key '", path_, key, "': expected ", expected, ", found nothing"));
}

absl::Status JsonReader::CheckAllRead() const {
  for (const auto& [key, value] : json_->items()) {
    if (!read_.contains(key)) {
      return absl::InvalidArgumentError(
          StrCat(source_, ": key '", path_, key, "': expected no such key, found ", JsonExcerpt(value)));
    }
  }
  return absl::OkStatus();
}

}  // namespace nestor
