#include "engine/text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace nestor {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) NESTOR_CHECK(!stop.empty()) << "an empty stop string";
}

std::string StopMatcher::Push(std::string_view text) {
  if (!matched_.empty()) return "";
  const size_t seen = held_.size();  // no stop string ends within
  held_ += text;
  for (size_t end = seen + 1; end <= held_.size(); ++end) {
    if (const std::string* const stop = MatchEndingAt(end)) {
      matched_ = *stop;
      return std::exchange(held_, {}).substr(0, end - stop->size());
    }
  }
  const size_t free = held_.size() - PossibleBeginning();
  std::string released = held_.substr(0, free);
  held_.erase(0, free);
  return released;
}

std::string StopMatcher::Flush() { return std::exchange(held_, {}); }

size_t StopMatcher::PossibleBeginning() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > longest; --length) {
      if (held_.compare(held_.size() - length, length, stop, 0, length) == 0) longest = length;
    }
  }
  return longest;
}

const std::string* StopMatcher::MatchEndingAt(size_t end) const {
  const std::string* longest = nullptr;
  for (const std::string& stop : stops_) {
    const bool matches = stop.size() <= end && held_.compare(end - stop.size(), stop.size(), stop) == 0;
    if (matches && (longest == nullptr || stop.size() > longest->size())) longest = &stop;
  }
  return longest;
}

}  // namespace nestor
