// Cuts text into the pieces that byte-pair encoding works on, with the regular expression of tokenizer.json.
#ifndef NESTOR_ENGINE_TEXT_PRE_TOKENIZER_H_
#define NESTOR_ENGINE_TEXT_PRE_TOKENIZER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/json.h"

namespace nestor {

// Immutable after Create; all methods are safe to call from any thread.
class PreTokenizer {
 public:
  // `json` is the `pre_tokenizer` of tokenizer.json: a ByteLevel, or a Sequence of Splits (a regex, behaviour
  // Isolated) and a ByteLevel at the end. Others are UNIMPLEMENTED; `source` is the file's name for errors.
  static absl::StatusOr<PreTokenizer> Create(const Json& json, std::string_view source);

  // Appends views into `text` (valid UTF-8) that cover it: the matches and what lies between them.
  // INTERNAL where the regex engine gives up.
  absl::Status Cut(std::string_view text, std::vector<std::string_view>& pieces) const;

  // Whether a space is put before text that does not begin with one.
  bool adds_prefix_space() const { return adds_prefix_space_; }

 private:
  class Regex;

  absl::Status AddSplit(const Json& json, std::string_view source);
  absl::Status AddByteLevel(const Json& json, std::string_view source);
  absl::Status AddRegex(std::string_view pattern, std::string_view source);

  std::vector<std::shared_ptr<const Regex>> regexes_;  // applied one after the other
  bool adds_prefix_space_ = false;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_PRE_TOKENIZER_H_
