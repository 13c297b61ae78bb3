// Reads tokenizer.json into a Tokenizer.
#include <optional>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/text/byte_level.h"
#include "engine/text/json_nesting.h"
#include "engine/text/tokenizer.h"
#include "engine/text/tokenizer_file.h"
#include "engine/text/tokenizer_json.h"

namespace nestor {

class TokenizerParser {
 public:
  TokenizerParser(const TokenizerFile& file, std::string_view source) : file_(file), source_(source) {}

  absl::StatusOr<Tokenizer> Parse() {
    NESTOR_RETURN_IF_ERROR(CheckSupported());
    NESTOR_RETURN_IF_ERROR(ReadAddedTokens());
    NESTOR_RETURN_IF_ERROR(ReadVocabulary());
    NESTOR_ASSIGN_OR_RETURN(const std::vector<Bpe::Merge> merges, ReadMerges());
    NESTOR_ASSIGN_OR_RETURN(const bool ignore_merges, ModelFlag("ignore_merges"));
    NESTOR_ASSIGN_OR_RETURN(Bpe bpe, Bpe::Create(std::move(pieces_), merges, ignore_merges, source_));
    NESTOR_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer,
                            PreTokenizer::Create(Member("pre_tokenizer"), source_));
    Tokenizer tokenizer(std::move(bpe), std::move(pre_tokenizer));
    tokenizer.token_bytes_ = std::move(token_bytes_);
    tokenizer.special_ = std::move(special_);
    tokenizer.ids_ = std::move(ids_);
    for (AddedTokens* const tokens : {&exact_tokens_, &normalized_tokens_}) {
      if (!tokens->empty()) tokenizer.added_tokens_.push_back(std::move(*tokens));
    }
    NESTOR_ASSIGN_OR_RETURN(tokenizer.prefix_tokens_, ReadPrefix());
    return tokenizer;
  }

 private:
  // Memory is reserved by the largest id; real vocabularies end far below.
  static constexpr int kIdEnd = 1 << 20;

  const Json& Member(const char* key) const { return JsonField(file_.rest, key); }
  const Json& Model(const char* key) const { return JsonField(Member("model"), key); }
  absl::StatusOr<bool> ModelFlag(const char* key) const {
    return BoolField(Member("model"), key, /*absent=*/false, source_, StrCat("model.", key));
  }

  absl::Status Broken(std::string_view key, std::string_view expected, const Json& found) const {
    return BrokenField(source_, key, expected, found);
  }
  absl::Status Unsupported(std::string_view key, std::string_view expected, const Json& found) const {
    return UnsupportedField(source_, key, expected, found);
  }

  // `unk_token` and `fuse_unk` need no check: Bpe wants a token for every byte, so nothing is unknown.
  absl::Status CheckSupported() const {
    if (!Member("model").is_object()) return Broken("model", "an object", Member("model"));
    if (Model("type") != "BPE") return Unsupported("model.type", "BPE", Model("type"));
    if (!Member("normalizer").is_null()) return Unsupported("normalizer", "null", Member("normalizer"));
    const Json& decoder = JsonField(Member("decoder"), "type");
    if (decoder != "ByteLevel") return Unsupported("decoder.type", "ByteLevel", decoder);
    if (!Model("dropout").is_null()) return Unsupported("model.dropout", "null", Model("dropout"));
    NESTOR_ASSIGN_OR_RETURN(const bool byte_fallback, ModelFlag("byte_fallback"));
    if (byte_fallback) return Unsupported("model.byte_fallback", "false", true);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!Model(key).is_null() && Model(key) != "") {
        return Unsupported(StrCat("model.", key), "null", Model(key));
      }
    }
    return absl::OkStatus();
  }

  // A token gets its id, once.
  absl::Status AddToken(std::string_view key, const std::string& content, const Json& id_json,
                        std::string bytes) {
    const bool good = id_json.is_number_unsigned() && id_json.get<uint64_t>() < kIdEnd;
    if (!good) return Broken(key, StrCat("an id below ", kIdEnd), id_json);
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
    for (const Json& entry : list) NESTOR_RETURN_IF_ERROR(ReadAddedToken(entry));
    return absl::OkStatus();
  }

  absl::Status ReadAddedToken(const Json& entry) {
    const auto flag = [&](const char* key, bool absent) {
      return BoolField(entry, key, absent, source_, StrCat("added_tokens.", key));
    };
    const Json& content_json = JsonField(entry, "content");
    const std::string content = content_json.is_string() ? content_json.get<std::string>() : "";
    if (content.empty()) return Broken("added_tokens.content", "a string that is not empty", entry);
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      NESTOR_ASSIGN_OR_RETURN(const bool is_set, flag(key, false));
      if (is_set) return Unsupported(StrCat("added_tokens.", key), "false", entry);
    }
    NESTOR_ASSIGN_OR_RETURN(const bool is_special, flag("special", false));
    NESTOR_ASSIGN_OR_RETURN(const bool is_normalized, flag("normalized", !is_special));
    NESTOR_RETURN_IF_ERROR(AddToken("added_tokens.id", content, JsonField(entry, "id"),
                                    BytesOfAlphabet(content).value_or(content)));
    const int32_t id = ids_[content];
    special_[id] = is_special;
    // With or without a normaliser, those to be found in normalised text come second.
    (is_normalized ? normalized_tokens_ : exact_tokens_).Add(content, id);
    return absl::OkStatus();
  }

  absl::Status ReadVocabulary() {
    if (file_.vocabulary.empty()) return Broken("model.vocab", "an object of tokens", Model("vocab"));
    pieces_.reserve(file_.vocabulary.size());
    ids_.reserve(file_.vocabulary.size() + ids_.size());
    std::vector<bool> is_added = known_;  // by id
    for (const auto& [content, id] : file_.vocabulary) {
      std::optional<std::string> bytes = BytesOfAlphabet(content);
      // Added tokens are found in the text before it is cut into pieces; a piece that only looks like one is
      // ordinary text. Content outside the alphabet stands for itself, but no text ever becomes it.
      const bool is_piece = bytes && !(id < is_added.size() && is_added[id]);
      if (is_piece) pieces_.emplace(*bytes, static_cast<int32_t>(id));
      NESTOR_RETURN_IF_ERROR(AddToken("model.vocab", content, id, std::move(bytes).value_or(content)));
      is_piece_.resize(known_.size());
      is_piece_[id] = is_piece;
    }
    return absl::OkStatus();
  }

  std::optional<int32_t> PieceId(const std::string& content) const {
    const auto id = ids_.find(content);
    return id == ids_.end() || !is_piece_[id->second] ? std::nullopt : std::optional(id->second);
  }

  absl::StatusOr<std::vector<Bpe::Merge>> ReadMerges() const {
    if (!Model("merges").is_array()) return Broken("model.merges", "a list", Model("merges"));
    std::vector<Bpe::Merge> merges;
    merges.reserve(file_.merges.size());
    for (const auto& [left, right] : file_.merges) {
      const std::optional<int32_t> left_id = PieceId(left), right_id = PieceId(right);
      const std::optional<int32_t> result = PieceId(left + right);
      if (!left_id || !right_id || !result) {
        return Broken(StrCat("model.merges[", merges.size(), "]"), "two tokens that make a third",
                      Json::array({left, right}));
      }
      merges.push_back({*left_id, *right_id, *result});
    }
    return merges;
  }

  // The tokens that the post-processor puts before a text.
  absl::StatusOr<std::vector<int32_t>> ReadPrefix() const {
    const Json& json = Member("post_processor");
    std::vector<int32_t> prefix;
    if (json.is_null()) return prefix;
    const bool is_sequence = JsonField(json, "type") == "Sequence";
    const Json parts = is_sequence ? JsonField(json, "processors") : Json::array({json});
    if (!parts.is_array()) return Broken("post_processor.processors", "a list", parts);
    for (const Json& part : parts) NESTOR_RETURN_IF_ERROR(ReadPrefixPart(part, prefix));
    return prefix;
  }

  // ByteLevel moves offsets only. A TemplateProcessing may put tokens before the text, nothing behind it.
  absl::Status ReadPrefixPart(const Json& json, std::vector<int32_t>& prefix) const {
    const Json& type = JsonField(json, "type");
    if (type == "ByteLevel") return absl::OkStatus();
    const Json& single = JsonField(json, "single");
    if (type != "TemplateProcessing" || !single.is_array() || single.empty() ||
        !JsonField(single.back(), "Sequence").is_object() || !prefix.empty()) {
      return Unsupported("post_processor", "ByteLevel or one TemplateProcessing that ends in the text", json);
    }
    for (size_t i = 0; i + 1 < single.size(); ++i) {
      const Json& name = JsonField(JsonField(single[i], "SpecialToken"), "id");
      const Json& tokens = JsonField(json, "special_tokens");
      const Json& ids =
          name.is_string() ? JsonField(JsonField(tokens, name.get<std::string>().c_str()), "ids") : name;
      if (!ids.is_array()) return Broken("post_processor.single", "a token of special_tokens", single[i]);
      for (const Json& id : ids) {
        const bool good =
            id.is_number_unsigned() && id.get<uint64_t>() < known_.size() && known_[id.get<size_t>()];
        if (!good) return Broken("post_processor.special_tokens", "the id of a token", id);
        prefix.push_back(id.get<int32_t>());
      }
    }
    return absl::OkStatus();
  }

  const TokenizerFile& file_;
  const std::string source_;
  Bpe::Vocabulary pieces_;
  std::vector<std::string> token_bytes_;
  std::vector<bool> known_;
  std::vector<bool> special_;
  std::vector<bool> is_piece_;
  absl::flat_hash_map<std::string, int32_t> ids_;
  AddedTokens exact_tokens_;
  AddedTokens normalized_tokens_;
};

absl::StatusOr<Tokenizer> Tokenizer::Parse(std::string_view text, std::string_view source) {
  NESTOR_ASSIGN_OR_RETURN(const TokenizerFile file, ReadTokenizerFile(text, source));
  if (!IsNestedWithin(file.rest)) {
    return absl::InvalidArgumentError(
        StrCat(source, ": expected JSON nested at most ", kJsonDepthMax, " deep, found deeper nesting"));
  }
  return TokenizerParser(file, source).Parse();
}

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return Parse(text, path);
}

}  // namespace nestor
