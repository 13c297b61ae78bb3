// Byte-pair encoding of one piece of text.
#ifndef NESTOR_ENGINE_TEXT_BPE_H_
#define NESTOR_ENGINE_TEXT_BPE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace nestor {

// Immutable after Create; Encode is safe to call from any thread.
class Bpe {
 public:
  using Vocabulary = absl::flat_hash_map<std::string, int32_t>;  // token bytes -> id

  // A merge of two tokens into a third, by their ids. The earlier of two merges is applied first; of two of
  // the same tokens the later counts.
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t result;
  };

  // `vocabulary`: the tokens that pieces of text may become; that every byte is one of them makes an unknown
  // token impossible. INVALID_ARGUMENT where a byte has no token.
  // `ignore_merges`: a piece that is a token as a whole is not taken apart first.
  static absl::StatusOr<Bpe> Create(Vocabulary vocabulary, const std::vector<Merge>& merges,
                                    bool ignore_merges, std::string_view source);

  // Appends the tokens of a piece. Time n·log n in its length.
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  struct MergeRule {
    int32_t rank;
    int32_t result;
  };

  Bpe() = default;
  const MergeRule* FindRule(int32_t left, int32_t right) const;
  void EncodeShort(std::string_view piece, std::vector<int32_t>& ids) const;
  void EncodeLong(std::string_view piece, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  std::array<int32_t, 256> byte_tokens_{};
  absl::flat_hash_map<uint64_t, MergeRule> rules_;  // left id << 32 | right id
  bool ignore_merges_ = false;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_BPE_H_
