#include "engine/text/tokenizer.h"

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/text/utf8.h"

namespace nestor {

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                                       absl::Span<const TextRange> plain) const {
  if (const std::optional<size_t> bad = FirstInvalidUtf8(text)) {
    return absl::InvalidArgumentError(StrCat("expected valid UTF-8, found an invalid byte at offset ", *bad));
  }
  std::vector<int32_t> ids;
  size_t ordinary = 0;  // where the text not yet encoded begins
  size_t range = 0;     // the first of `plain` that does not end before the offset
  for (size_t offset = 0; offset < text.size();) {
    while (range < plain.size() && plain[range].end <= offset) ++range;
    const std::optional<Match> token = FindAddedToken(text, offset);
    const bool touches_plain = token && range < plain.size() && plain[range].begin < offset + token->length;
    if (!token || touches_plain) {
      ++offset;
      continue;
    }
    NESTOR_RETURN_IF_ERROR(EncodeOrdinary(text.substr(ordinary, offset - ordinary), ids));
    ids.push_back(token->id);
    offset += token->length;
    ordinary = offset;
  }
  NESTOR_RETURN_IF_ERROR(EncodeOrdinary(text.substr(ordinary), ids));
  return ids;
}

std::optional<Tokenizer::Match> Tokenizer::FindAddedToken(std::string_view text, size_t offset) const {
  for (const size_t length : added_lengths_[static_cast<uint8_t>(text[offset])]) {
    if (length > text.size() - offset) continue;
    const auto token = added_tokens_.find(ToAbsl(text.substr(offset, length)));
    if (token != added_tokens_.end()) return Match{token->second, length};
  }
  return std::nullopt;
}

absl::Status Tokenizer::EncodeOrdinary(std::string_view text, std::vector<int32_t>& ids) const {
  if (text.empty()) return absl::OkStatus();
  std::string prefixed;
  if (pre_tokenizer_.adds_prefix_space() && text[0] != ' ') {
    prefixed = StrCat(" ", text);
    text = prefixed;
  }
  std::vector<std::string_view> pieces;
  NESTOR_RETURN_IF_ERROR(pre_tokenizer_.Cut(text, pieces));
  for (const std::string_view piece : pieces) bpe_.Encode(piece, ids);
  return absl::OkStatus();
}

std::string Tokenizer::Decode(absl::Span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!skip_special || !IsSpecial(id)) bytes += TokenBytes(id);
  }
  return ReplaceInvalidUtf8(bytes);
}

std::optional<int32_t> Tokenizer::TokenId(std::string_view content) const {
  const auto id = ids_.find(ToAbsl(content));
  return id == ids_.end() ? std::nullopt : std::optional(id->second);
}

std::string_view Tokenizer::TokenBytes(int32_t id) const {
  return id >= 0 && id < vocab_size() ? std::string_view(token_bytes_[id]) : std::string_view();
}

bool Tokenizer::IsSpecial(int32_t id) const { return id >= 0 && id < vocab_size() && special_[id]; }

}  // namespace nestor
