// Finds added tokens (`<|im_end|>`) in text.
#ifndef NESTOR_ENGINE_TEXT_ADDED_TOKENS_H_
#define NESTOR_ENGINE_TEXT_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace nestor {

// A set of token contents. Filled while a tokenizer is read; from then on safe to use from any thread.
class AddedTokens {
 public:
  struct Match {
    int32_t id;
    size_t length;  // bytes
  };

  // `content` must not be empty.
  void Add(const std::string& content, int32_t id);

  // The longest token that `text`, which must not be empty, begins with.
  std::optional<Match> LongestAtBegin(std::string_view text) const;

  bool empty() const { return ids_.empty(); }

 private:
  absl::flat_hash_map<std::string, int32_t> ids_;   // content -> id
  std::array<std::vector<size_t>, 256> lengths_{};  // of the contents with this first byte, descending
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_ADDED_TOKENS_H_
