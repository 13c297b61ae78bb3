#include "engine/text/python_text.h"

#include <charconv>
#include <cmath>

#include "engine/base/str_cat.h"
#include "engine/text/utf8.h"

namespace nestor {
namespace {

// str.isspace()
bool IsPythonSpace(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

// repr() of a finite float: the fewest digits that read back the same, with an exponent below 1e-4 and from
// 1e16 on.
std::string PythonFloat(double value) {
  char buffer[32];
  const auto print = [&](std::chars_format format) {
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr);
  };
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e16)) return print(std::chars_format::scientific);
  std::string text = print(std::chars_format::fixed);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string JsonScalar(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string_view PythonStrip(std::string_view text) {
  while (!text.empty() && IsPythonSpace(DecodeUtf8(text))) text.remove_prefix(NextUtf8(text).length);
  while (!text.empty()) {
    size_t last = text.size() - 1;  // where the last character begins
    while (last > 0 && (text[last] & 0xC0) == 0x80) --last;
    if (!IsPythonSpace(DecodeUtf8(text.substr(last)))) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string PythonJson(const nlohmann::ordered_json& value) {
  if (value.is_number_float()) return PythonFloat(value.get<double>());
  if (!value.is_structured()) return JsonScalar(value);
  std::string text(value.is_array() ? "[" : "{");
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) text += ", ";
    first = false;
    if (value.is_object()) StrAppend(&text, JsonScalar(key), ": ");
    text += PythonJson(member);
  }
  text += value.is_array() ? "]" : "}";
  return text;
}

std::string PythonString(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  return PythonJson(value);
}

}  // namespace nestor
