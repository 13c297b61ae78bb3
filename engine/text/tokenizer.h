// Byte-level BPE tokenizer, read from a Hugging Face tokenizer.json.
#ifndef NESTOR_ENGINE_TEXT_TOKENIZER_H_
#define NESTOR_ENGINE_TEXT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"
#include "engine/text/pre_tokenizer.h"

namespace nestor {

// A range of bytes of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

// Immutable after Load; all methods are safe to call from any thread.
class Tokenizer {
 public:
  // Models of type BPE without normaliser, with a ByteLevel decoder. UNIMPLEMENTED names what is not
  // supported, INVALID_ARGUMENT what is broken, each with the key; `source` stands for the file in messages.
  // `truncation` and `padding` are left out of account: Hugging Face sets them anew for every call.
  static absl::StatusOr<Tokenizer> Load(const std::string& path);
  static absl::StatusOr<Tokenizer> Parse(std::string_view json, std::string_view source);

  // Token ids without the post-processor's. Added tokens (`<|im_end|>`) are recognised in the text, the
  // longest of the leftmost, but never with a byte in a range of `plain`: what a user wrote is ordinary text,
  // whatever it looks like. `plain` is ascending and does not overlap; pieces of ordinary text go across its
  // borders. INVALID_ARGUMENT with the byte offset where the text is not valid UTF-8.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text,
                                              absl::Span<const TextRange> plain = {}) const;

  // What the post-processor puts before a text: `<s>` for some models of the family, nothing for others.
  const std::vector<int32_t>& prefix_tokens() const { return prefix_tokens_; }

  // Text of tokens; invalid UTF-8 becomes U+FFFD. Ids out of range have no text.
  std::string Decode(absl::Span<const int32_t> ids, bool skip_special) const;

  // Largest id + 1.
  int vocab_size() const { return static_cast<int>(token_bytes_.size()); }
  // The id of a token by its content as tokenizer.json writes it.
  std::optional<int32_t> TokenId(std::string_view content) const;
  // The raw bytes of a token, not always valid UTF-8; empty for ids out of range.
  std::string_view TokenBytes(int32_t id) const;
  bool IsSpecial(int32_t id) const;

 private:
  friend class TokenizerParser;

  // Appends the ids of a part of a text, looking for the sets of added tokens from `set` on.
  absl::Status EncodePart(std::string_view text, TextRange part, absl::Span<const TextRange> plain,
                          size_t set, std::vector<int32_t>& ids) const;
  // The same for a part in which no added token is looked for.
  absl::Status EncodeOrdinary(std::string_view text, std::vector<int32_t>& ids) const;

  Tokenizer(Bpe bpe, PreTokenizer pre_tokenizer)
      : bpe_(std::move(bpe)), pre_tokenizer_(std::move(pre_tokenizer)) {}

  Bpe bpe_;
  PreTokenizer pre_tokenizer_;
  std::vector<std::string> token_bytes_;           // by id
  std::vector<bool> special_;                      // by id
  absl::flat_hash_map<std::string, int32_t> ids_;  // content -> id
  std::vector<AddedTokens> added_tokens_;          // sets, looked for one after the other
  std::vector<int32_t> prefix_tokens_;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_TOKENIZER_H_
