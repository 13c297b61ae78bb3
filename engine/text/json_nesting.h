// Limits how deep JSON from outside may nest.
#ifndef NESTOR_ENGINE_TEXT_JSON_NESTING_H_
#define NESTOR_ENGINE_TEXT_JSON_NESTING_H_

#include <algorithm>

namespace nestor {

// Beyond what any real tool definition or tokenizer.json needs.
inline constexpr int kJsonDepthMax = 100;

// Whether a value of nlohmann::basic_json has at most `depth_max` objects and lists inside each other.
// Printing and copying a value recurse, so deep nesting would exhaust the stack.
template <typename AnyJson>
bool IsNestedWithin(const AnyJson& value, int depth_max = kJsonDepthMax) {
  if (!value.is_structured()) return true;
  if (depth_max == 0) return false;
  return std::all_of(value.begin(), value.end(),
                     [&](const AnyJson& member) { return IsNestedWithin(member, depth_max - 1); });
}

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_JSON_NESTING_H_
