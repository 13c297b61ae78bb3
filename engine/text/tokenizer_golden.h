// Compares a tokenizer with golden lines: JSON objects with `text`, `ids`, `decoded`, `decoded_skip_special`.
#ifndef NESTOR_ENGINE_TEXT_TOKENIZER_GOLDEN_H_
#define NESTOR_ENGINE_TEXT_TOKENIZER_GOLDEN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/text/tokenizer.h"

namespace nestor {

struct TokenizerGoldenReport {
  int lines = 0;
  int failures = 0;                   // lines with at least one difference
  std::vector<std::string> messages;  // of the first ten failures
};

// Checks encoding, decoding and the incremental detokenizer, with and without special tokens.
absl::StatusOr<TokenizerGoldenReport> CheckTokenizerGolden(const Tokenizer& tokenizer,
                                                           const std::string& path);

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_TOKENIZER_GOLDEN_H_
