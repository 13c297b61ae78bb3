#include "engine/serve/output_text.h"

#include <utility>

namespace nestor {

OutputText::OutputText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings)
    : detokenizer_(tokenizer, /*skip_special=*/true), stop_matcher_(std::move(stop_strings)) {}

std::string OutputText::Push(int32_t token) { return stop_matcher_.Push(detokenizer_.Push(token)); }

std::string OutputText::Flush() {
  std::string rest = stop_matcher_.Push(detokenizer_.Flush());
  return rest + stop_matcher_.Flush();
}

}  // namespace nestor
