#include "engine/text/tokenizer_file.h"

#include <gtest/gtest.h>

namespace nestor {
namespace {

std::string ErrorOf(std::string_view text) {
  const absl::StatusOr<TokenizerFile> file = ReadTokenizerFile(text, "t.json");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

TEST(TokenizerFile, TakesVocabularyAndMergesOut) {
  const auto file = ReadTokenizerFile(R"({"a": [1, -2, 2.5, {"b": [true, null]}], "model": {
      "type": "BPE", "vocab": {"x": 3, "é": 0}, "merges": [["x", "é"], "é x"], "c": {}}, "d": "e"})",
                                      "t.json");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->vocabulary.size(), 2u);
  EXPECT_EQ(file->vocabulary[0].content, "x");
  EXPECT_EQ(file->vocabulary[0].id, 3u);
  EXPECT_EQ(file->vocabulary[1].content, "é");
  EXPECT_EQ(file->vocabulary[1].id, 0u);
  ASSERT_EQ(file->merges.size(), 2u);
  EXPECT_EQ(file->merges[0].left + "|" + file->merges[0].right, "x|é");
  EXPECT_EQ(file->merges[1].left + "|" + file->merges[1].right, "é|x");
  EXPECT_EQ(file->rest, Json::parse(R"({"a": [1, -2, 2.5, {"b": [true, null]}], "model": {
      "type": "BPE", "vocab": {}, "merges": [], "c": {}}, "d": "e"})"));
}

TEST(TokenizerFile, OnlyThoseOfTheModelAreTakenOut) {
  for (const char* const text :
       {R"({"vocab": {"a": "b"}, "merges": [1], "x": {"vocab": {"a": {}}}})",
        R"({"model": {"x": {"vocab": {"a": "b"}, "merges": [1]}}})",
        R"({"model": {"vocab": [1, {"a": 2}], "merges": {"a": 1}}})", R"({"model": [{"vocab": {"a": 1}}]})",
        R"([{"model": {"vocab": {}}}])", "7"}) {
    const auto file = ReadTokenizerFile(text, "t.json");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->rest, Json::parse(text));
    EXPECT_TRUE(file->vocabulary.empty());
    EXPECT_TRUE(file->merges.empty());
  }
}

TEST(TokenizerFile, SaysWhereTheTextStopsBeingJson) {
  EXPECT_EQ(ErrorOf(R"({"a": 1,,)"), "t.json: expected JSON, found an error at byte 9");
  EXPECT_EQ(ErrorOf(R"({"a": 1} x)"), "t.json: expected JSON, found an error at byte 10");
  EXPECT_EQ(ErrorOf(R"({"a": NaN})"), "t.json: expected JSON, found an error at byte 7");
  EXPECT_EQ(ErrorOf("{\"a\": \"\xFF\"}"), "t.json: expected JSON, found an error at byte 8");
}

TEST(TokenizerFile, SaysWhatDoesNotBelong) {
  const auto vocabulary = [](const std::string& id) {
    return ErrorOf(R"({"model": {"vocab": {"a": 0, "b": )" + id + "}}}");
  };
  EXPECT_EQ(vocabulary("-1"), "t.json: key 'model.vocab[b]': expected an id, found -1");
  EXPECT_EQ(vocabulary(R"("c")"), "t.json: key 'model.vocab[b]': expected an id, found \"c\"");
  EXPECT_EQ(vocabulary("{}"), "t.json: key 'model.vocab[b]': expected an id, found an object");
  const auto merge = [](const std::string& entry) {
    return ErrorOf(R"({"model": {"merges": ["a b", )" + entry + "]}}");
  };
  EXPECT_EQ(merge("1"), "t.json: key 'model.merges[1]': expected a pair of tokens, found 1");
  EXPECT_EQ(merge("{}"), "t.json: key 'model.merges[1]': expected a pair of tokens, found an object");
  EXPECT_EQ(merge(R"("ab")"), "t.json: key 'model.merges[1]': expected a pair of tokens, found \"ab\"");
  EXPECT_EQ(merge(R"(["a"])"), "t.json: key 'model.merges[1]': expected a pair of tokens, found a list of 1");
  EXPECT_EQ(merge(R"(["a", []])"), "t.json: key 'model.merges[1]': expected a pair of tokens, found a list");
}

}  // namespace
}  // namespace nestor
