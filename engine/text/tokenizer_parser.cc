// Reads tokenizer.json into a Tokenizer.
#include <array>
#include <set>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/text/byte_level.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace nestor {

class TokenizerParser {
 public:
  TokenizerParser(const Json& json, std::string_view source) : json_(json), source_(source) {}

  absl::StatusOr<Tokenizer> Parse() {
    NESTOR_RETURN_IF_ERROR(CheckSupported());
    NESTOR_RETURN_IF_ERROR(ReadAddedTokens());
    NESTOR_RETURN_IF_ERROR(ReadVocabulary());
    NESTOR_ASSIGN_OR_RETURN(const std::vector<Bpe::Merge> merges, ReadMerges());
    const bool ignore_merges = Model("ignore_merges") == true;
    NESTOR_ASSIGN_OR_RETURN(Bpe bpe, Bpe::Create(std::move(pieces_), merges, ignore_merges, source_));
    NESTOR_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer,
                            PreTokenizer::Create(Member("pre_tokenizer"), source_));
    Tokenizer tokenizer(std::move(bpe), std::move(pre_tokenizer));
    tokenizer.token_bytes_ = std::move(token_bytes_);
    tokenizer.special_ = std::move(special_);
    tokenizer.ids_ = std::move(ids_);
    tokenizer.added_tokens_ = std::move(added_tokens_);
    tokenizer.added_lengths_ = std::move(added_lengths_);
    NESTOR_ASSIGN_OR_RETURN(tokenizer.prefix_tokens_, ReadPrefix(Member("post_processor"), tokenizer));
    return tokenizer;
  }

 private:
  static constexpr int kIdMax = 1 << 24;

  const Json& Member(const char* key) const { return Find(json_, key); }
  const Json& Model(const char* key) const { return Find(Find(json_, "model"), key); }
  static const Json& Find(const Json& object, const char* key) {
    static const Json kNothing;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : kNothing;
  }

  absl::Status Broken(std::string_view key, std::string_view expected, const Json& found) const {
    return absl::InvalidArgumentError(
        StrCat(source_, ": key '", key, "': expected ", expected, ", found ", JsonExcerpt(found)));
  }
  absl::Status Unsupported(std::string_view key, std::string_view expected, const Json& found) const {
    return absl::UnimplementedError(std::string(Broken(key, expected, found).message()));
  }

  absl::Status CheckSupported() const {
    if (Model("type") != "BPE") return Unsupported("model.type", "BPE", Model("type"));
    if (!Member("normalizer").is_null()) return Unsupported("normalizer", "null", Member("normalizer"));
    if (Find(Member("decoder"), "type") != "ByteLevel") {
      return Unsupported("decoder.type", "ByteLevel", Find(Member("decoder"), "type"));
    }
    if (!Model("dropout").is_null()) return Unsupported("model.dropout", "null", Model("dropout"));
    if (Model("byte_fallback") == true) return Unsupported("model.byte_fallback", "false", true);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!Model(key).is_null() && Model(key) != "")
        return Unsupported(StrCat("model.", key), "null", Model(key));
    }
    return absl::OkStatus();
  }

  // A token gets its id, once.
  absl::Status AddToken(std::string_view key, const std::string& content, const Json& id_json,
                        std::string bytes) {
    const bool good = id_json.is_number_unsigned() && id_json.get<uint64_t>() < kIdMax;
    if (!good) return Broken(key, StrCat("an id below ", kIdMax), id_json);
    const size_t id = id_json.get<size_t>();
    if (id >= token_bytes_.size()) {
      token_bytes_.resize(id + 1);
      known_.resize(id + 1);
      special_.resize(id + 1);
    }
    const auto [existing, is_new] = ids_.try_emplace(content, static_cast<int32_t>(id));
    if (existing->second != static_cast<int32_t>(id) || (is_new && known_[id])) {
      return Broken(key, StrCat("one id for each token, '", content, "'"), id_json);
    }
    known_[id] = true;
    token_bytes_[id] = std::move(bytes);
    return absl::OkStatus();
  }

  absl::Status ReadAddedTokens() {
    const Json& list = Member("added_tokens");
    if (list.is_null()) return absl::OkStatus();
    if (!list.is_array()) return Broken("added_tokens", "a list", list);
    std::array<std::set<size_t>, 256> lengths;
    for (const Json& entry : list) {
      const Json& content_json = Find(entry, "content");
      const std::string content = content_json.is_string() ? content_json.get<std::string>() : "";
      if (content.empty()) return Broken("added_tokens.content", "a string that is not empty", entry);
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (Find(entry, key) == true) return Unsupported(StrCat("added_tokens.", key), "false", entry);
      }
      NESTOR_RETURN_IF_ERROR(AddToken("added_tokens.id", content, Find(entry, "id"), Bytes(content)));
      const int32_t id = ids_[content];
      special_[id] = Find(entry, "special") == true;
      added_tokens_[content] = id;
      lengths[static_cast<uint8_t>(content[0])].insert(content.size());
    }
    for (size_t first = 0; first < lengths.size(); ++first) {
      added_lengths_[first].assign(lengths[first].rbegin(), lengths[first].rend());
    }
    return absl::OkStatus();
  }

  // Content in the byte-level alphabet stands for bytes, other content for itself.
  static std::string Bytes(const std::string& content) { return BytesOfAlphabet(content).value_or(content); }

  absl::Status ReadVocabulary() {
    const Json& vocabulary = Model("vocab");
    if (!vocabulary.is_object() || vocabulary.empty())
      return Broken("model.vocab", "an object of tokens", vocabulary);
    pieces_.reserve(vocabulary.size());
    for (const auto& [content, id] : vocabulary.items()) {
      const bool is_added = ids_.contains(content);
      std::string bytes = Bytes(content);
      // Added tokens are found in the text before it is cut into pieces; a piece that only looks like one is
      // ordinary text.
      if (!is_added && id.is_number_unsigned()) pieces_.emplace(bytes, id.get<int32_t>());
      NESTOR_RETURN_IF_ERROR(AddToken(StrCat("model.vocab"), content, id, std::move(bytes)));
    }
    return absl::OkStatus();
  }

  // ["a", "b"] or, in older files, "a b".
  absl::StatusOr<std::vector<Bpe::Merge>> ReadMerges() const {
    const Json& list = Model("merges");
    if (!list.is_array()) return Broken("model.merges", "a list", list);
    std::vector<Bpe::Merge> merges;
    merges.reserve(list.size());
    for (const Json& entry : list) {
      std::string left, right;
      if (entry.is_string()) {
        const std::string text = entry.get<std::string>();
        const size_t space = text.find(' ');
        if (space != std::string::npos) left = text.substr(0, space), right = text.substr(space + 1);
      } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        left = entry[0].get<std::string>(), right = entry[1].get<std::string>();
      }
      if (left.empty() || right.empty()) return Broken("model.merges", "pairs of tokens", entry);
      merges.push_back({Bytes(left), Bytes(right)});
    }
    return merges;
  }

  // ByteLevel moves offsets only. A TemplateProcessing may put tokens before the text, nothing behind it.
  absl::StatusOr<std::vector<int32_t>> ReadPrefix(const Json& json, const Tokenizer& tokenizer) const {
    const Json& type = Find(json, "type");
    if (json.is_null() || type == "ByteLevel") return std::vector<int32_t>();
    if (type == "Sequence" && Find(json, "processors").is_array()) {
      std::vector<int32_t> prefix;
      for (const Json& part : Find(json, "processors")) {
        NESTOR_ASSIGN_OR_RETURN(const std::vector<int32_t> more, ReadPrefix(part, tokenizer));
        prefix.insert(prefix.end(), more.begin(), more.end());
      }
      return prefix;
    }
    const Json& single = Find(json, "single");
    if (type != "TemplateProcessing" || !single.is_array() || single.empty() ||
        !single.back().contains("Sequence")) {
      return Unsupported("post_processor", "ByteLevel or TemplateProcessing that ends in the text", json);
    }
    std::vector<int32_t> prefix;
    for (size_t i = 0; i + 1 < single.size(); ++i) {
      const Json& name = Find(Find(single[i], "SpecialToken"), "id");
      const std::optional<int32_t> id =
          name.is_string() ? tokenizer.TokenId(name.get<std::string>()) : std::nullopt;
      if (!id) return Broken("post_processor.single", "a known special token", single[i]);
      prefix.push_back(*id);
    }
    return prefix;
  }

  const Json& json_;
  const std::string source_;
  Bpe::Vocabulary pieces_;
  std::vector<std::string> token_bytes_;
  std::vector<bool> known_;
  std::vector<bool> special_;
  absl::flat_hash_map<std::string, int32_t> ids_;
  absl::flat_hash_map<std::string, int32_t> added_tokens_;
  std::array<std::vector<size_t>, 256> added_lengths_;
};

absl::StatusOr<Tokenizer> Tokenizer::Parse(std::string_view text, std::string_view source) {
  NESTOR_ASSIGN_OR_RETURN(const Json json, ParseJson(text, source));
  return TokenizerParser(json, source).Parse();
}

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return Parse(text, path);
}

}  // namespace nestor
