// tokenizer.json, read with the two parts that have hundreds of thousands of entries as plain lists: as a
// tree of JSON values they take four times as long.
#ifndef NESTOR_ENGINE_TEXT_TOKENIZER_FILE_H_
#define NESTOR_ENGINE_TEXT_TOKENIZER_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/json.h"

namespace nestor {

struct TokenizerFile {
  struct Token {
    std::string content;
    uint64_t id;
  };
  struct Merge {
    std::string left;
    std::string right;
  };

  std::vector<Token> vocabulary;  // model.vocab, in the order of the file
  std::vector<Merge> merges;      // model.merges, ["a", "b"] or, in older files, "a b"
  Json rest;                      // everything else; the two are empty where they were read
};

// INVALID_ARGUMENT where the text is not JSON, an id not a number from 0 on or a merge not a pair of tokens.
absl::StatusOr<TokenizerFile> ReadTokenizerFile(std::string_view text, std::string_view source);

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_TOKENIZER_FILE_H_
