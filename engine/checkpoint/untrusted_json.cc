#include "engine/checkpoint/untrusted_json.h"

#include <algorithm>

#include "engine/base/file.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

// Calls `visit(offset)` for every character outside of strings.
template <typename Visit>
void ForEachOutsideStrings(std::string_view text, const Visit& visit) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      visit(i);
    } else if (text[i] == '\\') {
      ++i;
    }
  }
}

absl::Status CheckNesting(std::string_view text, std::string_view source) {
  constexpr int kDepthMax = 100;
  int depth = 0;
  int deepest = 0;
  ForEachOutsideStrings(text, [&](size_t offset) {
    if (text[offset] == '[' || text[offset] == '{') deepest = std::max(deepest, ++depth);
    if (text[offset] == ']' || text[offset] == '}') --depth;
  });
  if (deepest <= kDepthMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(source, ": expected JSON nested at most ", kDepthMax, " deep, found ", deepest));
}

std::string QuoteInfinity(std::string_view text) {
  constexpr std::string_view kInfinity = "Infinity";
  std::string quoted;
  size_t copied = 0;
  ForEachOutsideStrings(text, [&](size_t offset) {
    if (text.substr(offset, kInfinity.size()) != kInfinity) return;
    StrAppend(&quoted, text.substr(copied, offset - copied), "\"", kInfinity, "\"");
    copied = offset + kInfinity.size();
  });
  return StrCat(quoted, text.substr(copied));
}

}  // namespace

absl::StatusOr<Json> ParseUntrustedJson(std::string_view text, std::string_view source) {
  NESTOR_RETURN_IF_ERROR(CheckNesting(text, source));
  return ParseJson(text, source);
}

absl::StatusOr<Json> ReadUntrustedJson(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseUntrustedJson(text, path);
}

absl::StatusOr<Json> ReadPythonJson(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseUntrustedJson(QuoteInfinity(text), path);
}

}  // namespace nestor
