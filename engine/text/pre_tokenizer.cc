#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/text/pre_tokenizer.h"

#include <pcre2.h>

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/text/tokenizer_json.h"
#include "engine/text/utf8.h"

namespace nestor {
namespace {

// What ByteLevel cuts with where `use_regex` is set.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string RegexMessage(int error) {
  PCRE2_UCHAR message[256] = {};
  pcre2_get_error_message(error, message, sizeof(message));
  return reinterpret_cast<const char*>(message);
}

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatchData>;

// Hugging Face's regex engine takes for white space what Unicode does; PCRE2's \s takes U+180E as well.
std::string WithUnicodeWhiteSpace(std::string_view pattern) {
  std::string rewritten;
  for (size_t i = 0; i < pattern.size();) {
    const std::string_view unit = pattern.substr(i, pattern[i] == '\\' ? 2 : 1);  // an escape is one unit
    if (unit == R"(\s)") {
      rewritten += R"(\p{White_Space})";
    } else if (unit == R"(\S)") {
      rewritten += R"(\P{White_Space})";
    } else {
      rewritten += unit;
    }
    i += unit.size();
  }
  return rewritten;
}

}  // namespace

class PreTokenizer::Regex {
 public:
  static absl::StatusOr<std::shared_ptr<const Regex>> Compile(std::string_view pattern,
                                                              std::string_view source) {
    const std::string rewritten = WithUnicodeWhiteSpace(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* const code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
    if (code == nullptr) {
      return BrokenField(source, "pre_tokenizer.pattern.Regex",
                         StrCat("a regular expression (", RegexMessage(error), ")"), Json(pattern));
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not wrong
    return std::shared_ptr<const Regex>(new Regex(code));
  }

  ~Regex() { pcre2_code_free(code_); }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  absl::Status Cut(std::string_view text, std::vector<std::string_view>& pieces) const {
    const MatchData data(pcre2_match_data_create(1, nullptr));
    size_t end = 0;  // of the last piece
    for (size_t from = 0; from < text.size();) {
      const int result = Match(text, from, data.get());
      if (result == PCRE2_ERROR_NOMATCH) break;
      if (result < 0) {
        return absl::InternalError(
            StrCat("the tokenizer's regular expression failed at byte ", from, ": ", RegexMessage(result)));
      }
      const PCRE2_SIZE* const match = pcre2_get_ovector_pointer(data.get());
      if (match[0] > end) pieces.push_back(text.substr(end, match[0] - end));
      if (match[1] > match[0]) pieces.push_back(text.substr(match[0], match[1] - match[0]));
      end = match[1];
      // An empty match cuts too; the search goes on behind the next character.
      from = match[1] > match[0] ? match[1] : NextCharacter(text, match[1]);
    }
    if (end < text.size()) pieces.push_back(text.substr(end));
    return absl::OkStatus();
  }

 private:
  static size_t NextCharacter(std::string_view text, size_t offset) {
    return offset < text.size() ? offset + NextUtf8(text.substr(offset)).length : text.size();
  }

  explicit Regex(pcre2_code* code) : code_(code) {}

  // The compiled form has a small stack; where that is not enough, the interpreter takes over.
  int Match(std::string_view text, size_t from, pcre2_match_data* data) const {
    const auto match = [&](uint32_t options) {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, data, nullptr);
    };
    const int result = match(0);
    return result == PCRE2_ERROR_JIT_STACKLIMIT ? match(PCRE2_NO_JIT) : result;
  }

  pcre2_code* const code_;
};

absl::StatusOr<PreTokenizer> PreTokenizer::Create(const Json& json, std::string_view source) {
  const bool is_sequence = JsonField(json, "type") == "Sequence";
  const Json parts = is_sequence ? JsonField(json, "pretokenizers") : Json::array({json});
  if (!parts.is_array() || parts.empty() || JsonField(parts.back(), "type") != "ByteLevel") {
    return UnsupportedField(source, "pre_tokenizer", "Splits, if any, and a ByteLevel at the end", json);
  }
  PreTokenizer pre_tokenizer;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    NESTOR_RETURN_IF_ERROR(pre_tokenizer.AddSplit(parts[i], source));
  }
  NESTOR_RETURN_IF_ERROR(pre_tokenizer.AddByteLevel(parts.back(), source));
  return pre_tokenizer;
}

absl::Status PreTokenizer::AddSplit(const Json& json, std::string_view source) {
  if (JsonField(json, "type") != "Split") {
    return UnsupportedField(source, "pre_tokenizer", "a Split before the ByteLevel", json);
  }
  const Json& pattern = JsonField(JsonField(json, "pattern"), "Regex");
  if (!pattern.is_string()) {
    return UnsupportedField(source, "pre_tokenizer.pattern", "a Regex", JsonField(json, "pattern"));
  }
  NESTOR_ASSIGN_OR_RETURN(const bool inverts,
                          BoolField(json, "invert", false, source, "pre_tokenizer.invert"));
  if (JsonField(json, "behavior") != "Isolated" || inverts) {
    return UnsupportedField(source, "pre_tokenizer.behavior", "Isolated, not inverted", json);
  }
  return AddRegex(pattern.get<std::string>(), source);
}

absl::Status PreTokenizer::AddByteLevel(const Json& json, std::string_view source) {
  NESTOR_ASSIGN_OR_RETURN(adds_prefix_space_, BoolField(json, "add_prefix_space", true, source,
                                                        "pre_tokenizer.add_prefix_space"));
  if (adds_prefix_space_ && !regexes_.empty()) {  // it would go before every piece of the Splits
    return UnsupportedField(source, "pre_tokenizer.add_prefix_space", "false after a Split", json);
  }
  NESTOR_ASSIGN_OR_RETURN(const bool uses_regex,
                          BoolField(json, "use_regex", true, source, "pre_tokenizer.use_regex"));
  return uses_regex ? AddRegex(kGpt2Pattern, source) : absl::OkStatus();
}

absl::Status PreTokenizer::AddRegex(std::string_view pattern, std::string_view source) {
  NESTOR_ASSIGN_OR_RETURN(auto regex, Regex::Compile(pattern, source));
  regexes_.push_back(std::move(regex));
  return absl::OkStatus();
}

absl::Status PreTokenizer::Cut(std::string_view text, std::vector<std::string_view>& pieces) const {
  const size_t first = pieces.size();
  if (!text.empty()) pieces.push_back(text);
  for (const auto& regex : regexes_) {
    const std::vector<std::string_view> whole(pieces.begin() + first, pieces.end());
    pieces.resize(first);
    for (const std::string_view piece : whole) NESTOR_RETURN_IF_ERROR(regex->Cut(piece, pieces));
  }
  return absl::OkStatus();
}

}  // namespace nestor
