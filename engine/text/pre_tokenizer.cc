#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/text/pre_tokenizer.h"

#include <pcre2.h>

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

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

absl::Status Unsupported(std::string_view source, std::string_view key, std::string_view expected,
                         const Json& found) {
  return absl::UnimplementedError(
      StrCat(source, ": key '", key, "': expected ", expected, ", found ", JsonExcerpt(found)));
}

}  // namespace

class PreTokenizer::Regex {
 public:
  static absl::StatusOr<std::shared_ptr<const Regex>> Compile(std::string_view pattern,
                                                              std::string_view source) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                           PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    if (code == nullptr) {
      return absl::InvalidArgumentError(
          StrCat(source,
                 ": key 'pre_tokenizer': expected a regular expression, found an error "
                 "at byte ",
                 offset, ": ", RegexMessage(error)));
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
      if (match[0] == match[1]) {  // an empty match cuts nothing: go on behind the next character
        from = match[1] + 1;
        while (from < text.size() && (text[from] & 0xC0) == 0x80) ++from;
        continue;
      }
      if (match[0] > end) pieces.push_back(text.substr(end, match[0] - end));
      pieces.push_back(text.substr(match[0], match[1] - match[0]));
      end = from = match[1];
    }
    if (end < text.size()) pieces.push_back(text.substr(end));
    return absl::OkStatus();
  }

 private:
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
  PreTokenizer pre_tokenizer;
  NESTOR_RETURN_IF_ERROR(pre_tokenizer.Add(json, source));
  return pre_tokenizer;
}

absl::Status PreTokenizer::Add(const Json& json, std::string_view source) {
  const std::string type = json.is_object() ? json.value("type", "") : "";
  if (type == "Split") return AddSplit(json, source);
  if (type == "ByteLevel") return AddByteLevel(json, source);
  if (type != "Sequence" || !json.contains("pretokenizers") || !json["pretokenizers"].is_array()) {
    return Unsupported(source, "pre_tokenizer", "Split, ByteLevel or a Sequence of them", json);
  }
  for (const Json& part : json["pretokenizers"]) NESTOR_RETURN_IF_ERROR(Add(part, source));
  return absl::OkStatus();
}

absl::Status PreTokenizer::AddSplit(const Json& json, std::string_view source) {
  const Json pattern = json.value("pattern", Json());
  if (!pattern.is_object() || !pattern.contains("Regex") || !pattern["Regex"].is_string()) {
    return Unsupported(source, "pre_tokenizer.pattern", "a Regex", pattern);
  }
  if (json.value("behavior", Json()) != "Isolated" || json.value("invert", Json(false)) != false) {
    return Unsupported(source, "pre_tokenizer.behavior", "Isolated, not inverted", json);
  }
  NESTOR_ASSIGN_OR_RETURN(auto regex, Regex::Compile(pattern["Regex"].get<std::string>(), source));
  regexes_.push_back(std::move(regex));
  return absl::OkStatus();
}

absl::Status PreTokenizer::AddByteLevel(const Json& json, std::string_view source) {
  adds_prefix_space_ = json.value("add_prefix_space", Json(true)) == true;
  if (json.value("use_regex", Json(true)) != true) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(auto regex, Regex::Compile(kGpt2Pattern, source));
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
