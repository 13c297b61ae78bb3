#include "engine/base/str_cat.h"

#include "gtest/gtest.h"

namespace nestor {
namespace {

TEST(StrCatTest, JoinsAnyPart) {
  const std::string_view view = "view";
  const absl::string_view other = "other";
  EXPECT_EQ(
      StrCat("text ", view, " ", other, " ", std::string("string"), " ", 7, " ", 0.5, " ", int64_t{1} << 40),
      "text view other string 7 0.5 1099511627776");
  EXPECT_EQ(StrCat(), "");
}

TEST(StrCatTest, KeepsNulBytesOfViews) {
  EXPECT_EQ(StrCat(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(StrCatTest, Appends) {
  std::string text = "a";
  StrAppend(&text, std::string_view("b"), 1);
  EXPECT_EQ(text, "ab1");
}

TEST(StrCatTest, ConvertsViews) {
  const std::string_view view = "view";
  EXPECT_EQ(ToStd(ToAbsl(view)).data(), view.data());
  EXPECT_EQ(ToStd(ToAbsl(view)), view);
}

}  // namespace
}  // namespace nestor
