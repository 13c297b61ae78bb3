#include "engine/text/tokenizer_golden.h"

#include <sstream>

#include "engine/base/file.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/text/detokenizer.h"

namespace nestor {
namespace {

std::string DecodeIncrementally(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                bool skip_special) {
  Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  for (const int32_t id : ids) text += detokenizer.Push(id);
  return text + detokenizer.Flush();
}

// What is wrong with one line; empty: nothing.
absl::StatusOr<std::string> CheckLine(const Tokenizer& tokenizer, const Json& line) {
  const std::string text = line.at("text");
  const std::vector<int32_t> expected = line.at("ids");
  NESTOR_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode(text));
  if (ids != expected) return StrCat("ids: expected ", line.at("ids").dump(), ", found ", Json(ids).dump());
  for (const auto& [key, skip_special] :
       {std::pair{"decoded", false}, std::pair{"decoded_skip_special", true}}) {
    const std::string decoded = tokenizer.Decode(expected, skip_special);
    if (decoded != line.at(key))
      return StrCat(key, ": expected ", line.at(key).dump(), ", found ", Json(decoded).dump());
    const std::string incremental = DecodeIncrementally(tokenizer, expected, skip_special);
    if (incremental != decoded) {
      return StrCat(key, ", token by token: expected ", Json(decoded).dump(), ", found ",
                    Json(incremental).dump());
    }
  }
  return std::string();
}

}  // namespace

absl::StatusOr<TokenizerGoldenReport> CheckTokenizerGolden(const Tokenizer& tokenizer,
                                                           const std::string& path) {
  constexpr size_t kMessagesMax = 10;
  NESTOR_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  TokenizerGoldenReport report;
  std::istringstream lines(file);
  for (std::string text; std::getline(lines, text);) {
    const std::string where = StrCat(path, ":", ++report.lines);
    NESTOR_ASSIGN_OR_RETURN(const Json line, ParseJson(text, where));
    try {
      NESTOR_ASSIGN_OR_RETURN(const std::string difference, CheckLine(tokenizer, line));
      if (difference.empty()) continue;
      ++report.failures;
      if (report.messages.size() < kMessagesMax) report.messages.push_back(StrCat(where, ": ", difference));
    } catch (const Json::exception& error) {
      return absl::InvalidArgumentError(StrCat(where, ": ", error.what()));
    }
  }
  return report;
}

}  // namespace nestor
