#include "engine/base/json.h"

#include "engine/base/file.h"
#include "engine/base/str_cat.h"
#include "gtest/gtest.h"

namespace nestor {
namespace {

TEST(JsonTest, ParsesJson) {
  const Json json = ParseJson(R"({"a": [1, -2.5, "ü", null]})", "x").value();
  EXPECT_EQ(json["a"][0], 1);
  EXPECT_EQ(json["a"][1], -2.5);
  EXPECT_EQ(json["a"][2], "ü");
  EXPECT_TRUE(json["a"][3].is_null());
}

TEST(JsonTest, ErrorsNameSourceAndByte) {
  EXPECT_EQ(ParseJson("{\"a\": }", "x.json").status(),
            absl::InvalidArgumentError("x.json: expected JSON, found an error at byte 7"));
  EXPECT_EQ(ParseJson("", "x.json").status(),
            absl::InvalidArgumentError("x.json: expected JSON, found an error at byte 1"));
}

TEST(JsonTest, RefusesWhatIsNoJson) {
  for (const char* text : {"NaN", "[Infinity]", "{} {}", "[1,]", "{'a': 1}", "\"\xff\"", "[1e999]", "01"}) {
    EXPECT_EQ(ParseJson(text, "x").status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(JsonTest, ParsesDeepNestingWithoutRecursion) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_TRUE(ParseJson(deep, "x").ok());
}

TEST(JsonTest, ReadsFiles) {
  const std::string path = testing::TempDir() + "nestor_json_test.json";
  ASSERT_TRUE(WriteFile(path, "[7]").ok());
  EXPECT_EQ(ReadJsonFile(path).value()[0], 7);
  ASSERT_TRUE(WriteFile(path, "").ok());
  EXPECT_EQ(ReadJsonFile(path).status().message(), StrCat(path, ": expected JSON, found an error at byte 1"));
}

TEST(JsonTest, ExcerptsAreShort) {
  EXPECT_EQ(JsonExcerpt(Json{{"a", 1}}), R"({"a":1})");
  EXPECT_EQ(JsonExcerpt(std::string(100, 'x')), "\"" + std::string(79, 'x') + "…");
}

TEST(JsonTest, ExcerptsAreValidUtf8) {
  for (int lead = 0; lead < 4; ++lead) {
    std::string text(lead, 'x');
    for (int i = 0; i < 40; ++i) text += "€";
    const std::string excerpt = JsonExcerpt(text);
    EXPECT_LE(excerpt.size(), 83u);
    EXPECT_TRUE(Json::accept(Json(excerpt).dump(-1, ' ', false, Json::error_handler_t::ignore)));
    EXPECT_NO_THROW(Json(excerpt).dump()) << excerpt;  // it throws on invalid UTF-8
  }
  EXPECT_EQ(JsonExcerpt("\xff"), "\"\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace nestor
