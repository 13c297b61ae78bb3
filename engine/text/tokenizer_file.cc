#include "engine/text/tokenizer_file.h"

#include <utility>

#include "engine/base/str_cat.h"

namespace nestor {
namespace {

// Receives the parts of the file one by one. A method returns false to end the reading, with a status.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  const absl::Status& status() const { return status_; }
  TokenizerFile Take() { return std::move(file_); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override { return Add(value); }
  bool binary(Json::binary_t& value) override { return Add(Json::binary(std::move(value))); }
  bool number_unsigned(uint64_t value) override {
    if (section_ != Section::kVocabulary) return Add(value);
    file_.vocabulary.push_back({std::move(key_), value});
    return true;
  }
  bool string(std::string& value) override {
    if (section_ == Section::kMerges) return AddSpacedMerge(value);
    if (section_ != Section::kMerge) return Add(std::move(value));
    parts_.push_back(std::move(value));
    return true;
  }
  bool key(std::string& value) override {
    key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) override { return Open(Json::object()); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t byte, const std::string&, const Json::exception&) override {
    status_ = absl::InvalidArgumentError(StrCat(source_, ": expected JSON, found an error at byte ", byte));
    return false;
  }

 private:
  enum class Section { kRest, kVocabulary, kMerges, kMerge };

  bool Add(Json value) {
    if (section_ != Section::kRest) return Refuse(JsonExcerpt(value));
    Insert(std::move(value));
    return true;
  }

  bool Open(Json container) {
    if (section_ == Section::kMerges && container.is_array()) {
      section_ = Section::kMerge;
      parts_.clear();
      return true;
    }
    if (section_ != Section::kRest) return Refuse(container.is_array() ? "a list" : "an object");
    if (open_.size() == 1) in_model_ = key_ == "model";
    if (open_.size() == 2 && in_model_) {
      if (key_ == "vocab" && container.is_object()) section_ = Section::kVocabulary;
      if (key_ == "merges" && container.is_array()) section_ = Section::kMerges;
    }
    open_.push_back(Insert(std::move(container)));
    return true;
  }

  bool Close() {
    if (section_ == Section::kMerge) {
      section_ = Section::kMerges;
      if (parts_.size() != 2) return Refuse(StrCat("a list of ", parts_.size()));
      return AddMerge(std::move(parts_[0]), std::move(parts_[1]));
    }
    section_ = Section::kRest;
    open_.pop_back();
    return true;
  }

  Json* Insert(Json value) {
    if (open_.empty()) return &(file_.rest = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool AddSpacedMerge(std::string_view text) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return Refuse(JsonExcerpt(text));
    return AddMerge(std::string(text.substr(0, space)), std::string(text.substr(space + 1)));
  }

  bool AddMerge(std::string left, std::string right) {
    file_.merges.push_back({std::move(left), std::move(right)});
    return true;
  }

  // Ends the reading: something does not belong in the section.
  bool Refuse(std::string_view found) {
    const bool in_vocabulary = section_ == Section::kVocabulary;
    const std::string place =
        in_vocabulary ? StrCat("vocab[", key_, "]") : StrCat("merges[", file_.merges.size(), "]");
    status_ =
        absl::InvalidArgumentError(StrCat(source_, ": key 'model.", place, "': expected ",
                                          in_vocabulary ? "an id" : "a pair of tokens", ", found ", found));
    return false;
  }

  const std::string source_;
  absl::Status status_;
  TokenizerFile file_;
  std::vector<Json*> open_;  // the objects and lists around the current place
  std::string key_;          // the last one
  bool in_model_ = false;
  Section section_ = Section::kRest;
  std::vector<std::string> parts_;  // of a merge
};

}  // namespace

absl::StatusOr<TokenizerFile> ReadTokenizerFile(std::string_view text, std::string_view source) {
  Reader reader(source);
  if (!Json::sax_parse(text, &reader)) return reader.status();
  return reader.Take();
}

}  // namespace nestor
