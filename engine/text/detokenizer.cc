#include "engine/text/detokenizer.h"

#include <utility>

#include "engine/text/utf8.h"

namespace nestor {

std::string Detokenizer::Push(int32_t id) {
  if (skip_special_ && tokenizer_.IsSpecial(id)) return "";
  held_ += tokenizer_.TokenBytes(id);
  const size_t complete = CompleteUtf8Length(held_);
  std::string text = ReplaceInvalidUtf8(std::string_view(held_).substr(0, complete));
  held_.erase(0, complete);
  return text;
}

std::string Detokenizer::Flush() { return ReplaceInvalidUtf8(std::exchange(held_, {})); }

}  // namespace nestor
