#include "engine/text/tokenizer.h"

#include <algorithm>

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
  NESTOR_RETURN_IF_ERROR(EncodePart(text, {0, text.size()}, plain, 0, ids));
  return ids;
}

absl::Status Tokenizer::EncodePart(std::string_view text, TextRange part, absl::Span<const TextRange> plain,
                                   size_t set, std::vector<int32_t>& ids) const {
  if (set == added_tokens_.size()) return EncodeOrdinary(text.substr(part.begin, part.end - part.begin), ids);
  size_t ordinary = part.begin;  // where the text not yet encoded begins
  auto range = std::partition_point(plain.begin(), plain.end(),
                                    [&](const TextRange& r) { return r.end <= part.begin; });
  for (size_t offset = part.begin; offset < part.end;) {
    while (range != plain.end() && range->end <= offset) ++range;
    if (range != plain.end() && range->begin <= offset) {
      offset = range->end;
      continue;
    }
    const size_t limit = range == plain.end() ? part.end : std::min(part.end, range->begin);
    const auto token = added_tokens_[set].LongestAtBegin(text.substr(offset, limit - offset));
    if (!token) {
      ++offset;
      continue;
    }
    NESTOR_RETURN_IF_ERROR(EncodePart(text, {ordinary, offset}, plain, set + 1, ids));
    ids.push_back(token->id);
    offset += token->length;
    ordinary = offset;
  }
  return EncodePart(text, {ordinary, part.end}, plain, set + 1, ids);
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
