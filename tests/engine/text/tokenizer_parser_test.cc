// What is wrong or not supported in a tokenizer.json ends in an error that names the key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/engine/text/test_tokenizer.h"

namespace nestor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kBroken = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kUnsupported = absl::StatusCode::kUnimplemented;

void ExpectError(const absl::StatusOr<Tokenizer>& tokenizer, absl::StatusCode code, const std::string& part) {
  EXPECT_EQ(tokenizer.status().code(), code) << part << ": " << tokenizer.status();
  EXPECT_THAT(std::string(tokenizer.status().message()), AllOf(HasSubstr("t.json"), HasSubstr(part)));
}

void ExpectPatchError(const std::string& patch, absl::StatusCode code, const std::string& part) {
  ExpectError(ParseTokenizer(PatchedTokenizerJson(patch)), code, part);
}

TEST(TokenizerParser, NotJson) {
  ExpectError(Tokenizer::Parse("", "t.json"), kBroken, "expected JSON");
  ExpectError(Tokenizer::Parse("{\"model\": ", "t.json"), kBroken, "expected JSON");
  ExpectError(Tokenizer::Parse("\xFF", "t.json"), kBroken, "expected JSON");
  ExpectError(Tokenizer::Parse("[]", "t.json"), kBroken, "'model'");
  EXPECT_TRUE(absl::IsNotFound(Tokenizer::Load("/no/such/tokenizer.json").status()));
}

TEST(TokenizerParser, DeepNesting) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  ExpectError(Tokenizer::Parse("{\"pre_tokenizer\": " + deep + "}", "t.json"), kBroken, "100 deep");
}

TEST(TokenizerParser, Model) {
  ExpectPatchError(R"({"model": null})", kBroken, "'model'");
  ExpectPatchError(R"({"model": {"type": "Unigram"}})", kUnsupported, "'model.type': expected BPE");
  ExpectPatchError(R"({"model": {"dropout": 0.1}})", kUnsupported, "'model.dropout'");
  ExpectPatchError(R"({"model": {"byte_fallback": true}})", kUnsupported, "'model.byte_fallback'");
  ExpectPatchError(R"({"model": {"byte_fallback": "no"}})", kBroken, "'model.byte_fallback'");
  ExpectPatchError(R"({"model": {"ignore_merges": 1}})", kBroken, "'model.ignore_merges'");
  ExpectPatchError(R"({"model": {"end_of_word_suffix": "</w>"}})", kUnsupported, "end_of_word_suffix");
  ExpectPatchError(R"({"normalizer": {"type": "NFC"}})", kUnsupported, "'normalizer'");
  ExpectPatchError(R"({"decoder": {"type": "Metaspace"}})", kUnsupported, "'decoder.type'");
}

TEST(TokenizerParser, Vocabulary) {
  ExpectPatchError(R"({"model": {"vocab": null}})", kBroken, "'model.vocab': expected an object");
  ExpectPatchError(R"({"model": {"vocab": {"Q": null}}})", kBroken, "none for byte 81");
  ExpectPatchError(R"({"model": {"vocab": {"new": -1}}})", kBroken, "found -1");
  ExpectPatchError(R"({"model": {"vocab": {"new": 1.5}}})", kBroken, "found 1.5");
  ExpectPatchError(R"({"model": {"vocab": {"new": 1048576}}})", kBroken, "an id below 1048576");
  ExpectPatchError(R"({"model": {"vocab": {"new": 40}}})", kBroken, "one id for each token");
}

TEST(TokenizerParser, AHoleInTheVocabularyIsATokenWithoutText) {
  const auto tokenizer = ParseTokenizer(PatchedTokenizerJson(R"({"model": {"vocab": {"xyz": 390}}})"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->vocab_size(), 391);
  EXPECT_EQ(tokenizer->Decode({387, 390}, false), "xyz");
}

TEST(TokenizerParser, ContentOutsideTheAlphabetNeverComesFromText) {
  const auto tokenizer = ParseTokenizer(PatchedTokenizerJson(R"({"model": {"vocab": {"中": 384}}})"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Decode({384}, false), "中");
  EXPECT_EQ(tokenizer->Encode("中")->size(), 3u);
}

TEST(TokenizerParser, Merges) {
  ExpectPatchError(R"({"model": {"merges": null}})", kBroken, "'model.merges': expected a list");
  const auto with = [](const std::string& merge) { return R"({"model": {"merges": [)" + merge + "]}}"; };
  for (const char* const merge : {R"("ab")", R"(["a"])", R"(["a", "b", "c"])", R"(["a", 1])", "7", "[[]]"}) {
    ExpectPatchError(with(merge), kBroken, "'model.merges[0]': expected a pair of tokens");
  }
  // "<s>" is a token, but an added one.
  for (const char* const merge : {R"("a b c")", R"(["", "a"])", R"(["a", "中"])", R"(["<", "s>"])"}) {
    ExpectPatchError(with(merge), kBroken, "'model.merges[0]': expected two tokens that make a third");
  }
  ExpectPatchError(with(R"(["s", "t"], ["q", "q"])"), kBroken,
                   R"('model.merges[1]': expected two tokens that make a third, found ["q","q"])");
}

TEST(TokenizerParser, MergesAsWords) {
  Json json = AbacusTokenizerJson();
  for (Json& merge : json["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const auto tokenizer = ParseTokenizer(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::string text = "Sort the words in ascending order";
  EXPECT_EQ(*tokenizer->Encode(text), *AbacusTokenizer().Encode(text));
}

TEST(TokenizerParser, AddedTokens) {
  ExpectPatchError(R"({"added_tokens": 1})", kBroken, "'added_tokens'");
  const auto with = [](const char* entry) { return std::string(R"({"added_tokens": [)") + entry + "]}"; };
  ExpectPatchError(with("1"), kBroken, "'added_tokens.content'");
  ExpectPatchError(with(R"({"id": 0, "content": ""})"), kBroken, "'added_tokens.content'");
  ExpectPatchError(with(R"({"content": "<new>"})"), kBroken, "'added_tokens.id'");
  ExpectPatchError(with(R"({"id": 99999999, "content": "<new>"})"), kBroken, "'added_tokens.id'");
  ExpectPatchError(with(R"({"id": 9, "content": "<s>"})"), kBroken, "one id for each token, '<SPECIAL_9>'");
  ExpectPatchError(with(R"({"id": 9, "content": "<a>"}, {"id": 9, "content": "<b>"})"), kBroken, "'<b>'");
  ExpectPatchError(with(R"({"id": 0, "content": "<unk>", "special": "yes"})"), kBroken,
                   "added_tokens.special");
  for (const std::string flag : {"single_word", "lstrip", "rstrip"}) {
    ExpectPatchError(with((R"({"id": 0, "content": "<unk>", ")" + flag + "\": true}").c_str()), kUnsupported,
                     "'added_tokens." + flag + "'");
  }
}

TEST(TokenizerParser, PreTokenizer) {
  const auto with = [](const std::string& json) {
    Json changed = AbacusTokenizerJson();
    changed["pre_tokenizer"] = Json::parse(json);
    return ParseTokenizer(changed);
  };
  const auto split = [&](const std::string& fields) {
    return with(R"({"type": "Sequence", "pretokenizers": [{"type": "Split", )" + fields +
                R"(}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  };
  ExpectError(with("null"), kUnsupported, "'pre_tokenizer'");
  ExpectError(with(R"({"type": 7})"), kUnsupported, "'pre_tokenizer'");
  ExpectError(with(R"({"type": "Metaspace"})"), kUnsupported, "'pre_tokenizer'");
  ExpectError(with(R"({"type": "Sequence"})"), kUnsupported, "'pre_tokenizer'");
  ExpectError(with(R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]})"),
              kUnsupported, "Digits");
  ExpectError(with(R"({"type": "ByteLevel", "use_regex": 1})"), kBroken, "'pre_tokenizer.use_regex'");
  ExpectError(split(R"("behavior": "Isolated", "pattern": {"String": " "})"), kUnsupported, "a Regex");
  ExpectError(split(R"("behavior": "Removed", "pattern": {"Regex": "a"})"), kUnsupported, "Isolated");
  ExpectError(split(R"("behavior": "Isolated", "invert": true, "pattern": {"Regex": "a"})"), kUnsupported,
              "not inverted");
  ExpectError(split(R"("behavior": "Isolated", "pattern": {"Regex": "(a"})"), kBroken,
              "'pre_tokenizer.pattern.Regex': expected a regular expression");
  ExpectError(split(R"("behavior": "Isolated", "pattern": {"Regex": "a\\"})"), kBroken, "regular expression");
  ExpectError(
      with(R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "pattern":
                   {"Regex": "a"}}, {"type": "ByteLevel", "add_prefix_space": true}]})"),
      kUnsupported, "false after a Split");
}

TEST(TokenizerParser, PostProcessor) {
  ExpectPatchError(R"({"post_processor": {"type": "BertProcessing"}})", kUnsupported, "'post_processor'");
  ExpectPatchError(R"({"post_processor": {"type": "Sequence"}})", kBroken, "'post_processor.processors'");
  const auto with = [](const std::string& single) {
    return R"({"post_processor": {"type": "TemplateProcessing", "single": [)" + single +
           R"(], "special_tokens": {"<s>": {"ids": [1]}, "<x>": {"ids": [384]}}}})";
  };
  const std::string text = R"({"Sequence": {"id": "A"}})";
  ExpectPatchError(with(text + R"(, {"SpecialToken": {"id": "<s>"}})"), kUnsupported, "ends in the text");
  ExpectPatchError(with(R"({"SpecialToken": {"id": "<y>"}}, )" + text), kBroken, "'post_processor.single'");
  ExpectPatchError(with(R"({"SpecialToken": {"id": "<x>"}}, )" + text), kBroken, "found 384");
}

}  // namespace
}  // namespace nestor
