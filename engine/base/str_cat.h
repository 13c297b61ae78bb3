// absl::StrCat and absl::StrAppend that also take std::string_view: Debian 12 builds Abseil with a
// string_view of its own, to which std::string_view does not convert.
#ifndef NESTOR_ENGINE_BASE_STR_CAT_H_
#define NESTOR_ENGINE_BASE_STR_CAT_H_

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace nestor {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

namespace str_cat_internal {
inline absl::string_view Part(const std::string_view& text) { return ToAbsl(text); }
template <typename T>
const T& Part(const T& part) {
  return part;
}
}  // namespace str_cat_internal

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  return absl::StrCat(str_cat_internal::Part(parts)...);
}

template <typename... Parts>
void StrAppend(std::string* text, const Parts&... parts) {
  absl::StrAppend(text, str_cat_internal::Part(parts)...);
}

}  // namespace nestor

#endif  // NESTOR_ENGINE_BASE_STR_CAT_H_
