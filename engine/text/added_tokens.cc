#include "engine/text/added_tokens.h"

#include <algorithm>
#include <functional>

#include "engine/base/str_cat.h"

namespace nestor {

void AddedTokens::Add(const std::string& content, int32_t id) {
  ids_[content] = id;
  std::vector<size_t>& lengths = lengths_[static_cast<uint8_t>(content[0])];
  const auto place = std::lower_bound(lengths.begin(), lengths.end(), content.size(), std::greater<>());
  if (place == lengths.end() || *place != content.size()) lengths.insert(place, content.size());
}

std::optional<AddedTokens::Match> AddedTokens::LongestAtBegin(std::string_view text) const {
  for (const size_t length : lengths_[static_cast<uint8_t>(text[0])]) {
    if (length > text.size()) continue;
    const auto token = ids_.find(ToAbsl(text.substr(0, length)));
    if (token != ids_.end()) return Match{token->second, length};
  }
  return std::nullopt;
}

}  // namespace nestor
