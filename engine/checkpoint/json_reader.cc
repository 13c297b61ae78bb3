#include "engine/checkpoint/json_reader.h"

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
  const std::string_view key = path.substr(0, path.empty() ? 0 : path.size() - 1);  // without its last dot
  return absl::InvalidArgumentError(StrCat(source, key.empty() ? "" : StrCat(": key '", key, "'"),
                                           ": expected an object, found ", JsonExcerpt(json)));
}

std::pair<std::string_view, const Json*> JsonReader::FindMember(Keys keys) {
  std::pair<std::string_view, const Json*> found = {*keys.begin(), nullptr};
  for (const std::string_view key : keys) {
    read_.emplace(key);
    const auto member = json_->find(std::string(key));
    const bool is_there = member != json_->end() && !member->is_null();
    if (is_there && found.second == nullptr) found = {key, &*member};
  }
  return found;
}

absl::StatusOr<int> JsonReader::Int(Keys keys, int least, int most) {
  const auto [key, value] = FindMember(keys);
  if (value == nullptr) return Missing(key, IntWords(least, most));
  if (!IsInt(*value, least, most)) return Error(key, IntWords(least, most), *value);
  return value->get<int>();
}

absl::StatusOr<int> JsonReader::IntOr(Keys keys, int least, int most, int fallback) {
  if (Find(keys) == nullptr) return fallback;
  return Int(keys, least, most);
}

absl::StatusOr<double> JsonReader::Number(Keys keys, double least, double most) {
  const auto [key, value] = FindMember(keys);
  const std::string expected = StrCat("a number from ", least, " to ", most);
  if (value == nullptr) return Missing(key, expected);
  if (!value->is_number()) return Error(key, expected, *value);
  const double number = value->get<double>();
  if (!(number >= least && number <= most)) return Error(key, expected, *value);
  return number;
}

absl::StatusOr<double> JsonReader::NumberOr(Keys keys, double least, double most, double fallback) {
  if (Find(keys) == nullptr) return fallback;
  return Number(keys, least, most);
}

absl::StatusOr<bool> JsonReader::BoolOr(Keys keys, bool fallback) {
  const auto [key, value] = FindMember(keys);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return Error(key, "true or false", *value);
  return value->get<bool>();
}

absl::StatusOr<std::string> JsonReader::StringOr(Keys keys, std::string_view fallback) {
  const auto [key, value] = FindMember(keys);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return Error(key, "a string", *value);
  return value->get<std::string>();
}

std::string JsonReader::Message(std::string_view key, std::string_view expected,
                                std::string_view found) const {
  return StrCat(source_, ": key '", path_, key, "': expected ", expected, ", found ", found);
}

absl::Status JsonReader::Error(std::string_view key, std::string_view expected, const Json& found) const {
  return absl::InvalidArgumentError(Message(key, expected, JsonExcerpt(found)));
}

absl::Status JsonReader::Missing(std::string_view key, std::string_view expected) const {
  return absl::InvalidArgumentError(Message(key, expected, "nothing"));
}

absl::Status JsonReader::Unsupported(std::string_view key, std::string_view expected,
                                     const Json& found) const {
  return absl::UnimplementedError(Message(key, expected, JsonExcerpt(found)));
}

absl::Status JsonReader::CheckAllRead() const {
  for (const auto& [key, value] : json_->items()) {
    if (!read_.contains(key)) return Error(key, "no such key", value);
  }
  return absl::OkStatus();
}

}  // namespace nestor
