// Text as Python and transformers' Jinja filters make it: chat templates are written for them.
#ifndef NESTOR_ENGINE_TEXT_PYTHON_TEXT_H_
#define NESTOR_ENGINE_TEXT_PYTHON_TEXT_H_

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace nestor {

// str.strip(): without the whitespace at both ends, Unicode's included.
std::string_view PythonStrip(std::string_view text);

// The tojson filter: json.dumps with ensure_ascii=False, ", " and ": " between parts. Recurses: see
// json_nesting.h for values from outside.
std::string PythonJson(const nlohmann::ordered_json& value);

// str(): strings as they are; True, False and None; numbers.
std::string PythonString(const nlohmann::ordered_json& value);

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_PYTHON_TEXT_H_
