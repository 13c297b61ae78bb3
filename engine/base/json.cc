#include "engine/base/json.h"

#include "engine/base/file.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view source) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(StrCat(source, ": expected JSON, found an error at byte ", error.byte));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(StrCat(source, ": expected JSON, found ", error.what()));
  }
}

absl::StatusOr<Json> ReadJsonFile(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseJson(text, path);
}

std::string JsonExcerpt(const Json& value) {
  constexpr size_t kLengthMax = 80;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kLengthMax) return text;
  size_t length = kLengthMax;
  while ((text[length] & 0xC0) == 0x80) --length;  // not inside a UTF-8 character
  return StrCat(text.substr(0, length), "…");
}

}  // namespace nestor
