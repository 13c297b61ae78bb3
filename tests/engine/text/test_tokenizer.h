// The shipped model's tokenizer, as it is and with changes.
#ifndef NESTOR_TESTS_ENGINE_TEXT_TEST_TOKENIZER_H_
#define NESTOR_TESTS_ENGINE_TEXT_TEST_TOKENIZER_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/base/json.h"
#include "engine/text/tokenizer.h"

namespace nestor {

// 384 tokens: 32 added ones (0-31), 256 bytes, 96 merges; `<think>` is 12, `<|im_end|>` 11.
const Json& AbacusTokenizerJson();
const Tokenizer& AbacusTokenizer();

// The tokenizer of a changed tokenizer.json.
absl::StatusOr<Tokenizer> ParseTokenizer(const Json& json);

// AbacusTokenizerJson with a merge patch (RFC 7396) applied: null removes a key.
Json PatchedTokenizerJson(const std::string& patch);

}  // namespace nestor

#endif  // NESTOR_TESTS_ENGINE_TEXT_TEST_TOKENIZER_H_
