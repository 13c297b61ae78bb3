#include "engine/text/python_text.h"

#include <gtest/gtest.h>

namespace nestor {
namespace {

using OrderedJson = nlohmann::ordered_json;

TEST(PythonText, StripTakesUnicodeWhiteSpace) {
  EXPECT_EQ(PythonStrip(" \t\n\v\f\r a b \x1c\x1f"), "a b");
  EXPECT_EQ(PythonStrip("\u3000\u00a0\u2028\u0085x\u205f"), "x");
  EXPECT_EQ(PythonStrip("\u200bx\u180e\ufeff"), "\u200bx\u180e\ufeff");  // not white space for Python
  EXPECT_EQ(PythonStrip(" \u2003 "), "");
  EXPECT_EQ(PythonStrip(""), "");
  EXPECT_EQ(PythonStrip("\x80\x80"), "\x80\x80");  // invalid UTF-8 stays
}

// Expected values: json.dumps(value, ensure_ascii=False).
TEST(PythonText, JsonIsThatOfPython) {
  const auto json = [](const char* text) { return PythonJson(OrderedJson::parse(text)); };
  EXPECT_EQ(json(R"({"b":[1,-2,true,null],"a":{}})"), R"({"b": [1, -2, true, null], "a": {}})");
  EXPECT_EQ(json("[]"), "[]");
  EXPECT_EQ(json(R"("é\u4e2d\u001f\"\\/\n\t\b\f\r\u007f<>&'")"), R"("é中\u001f\"\\/\n\t\b\f\r)"
                                                                 "\x7f<>&'\"");
  EXPECT_EQ(json(R"({"k\"é":1})"), R"({"k\"é": 1})");
  EXPECT_EQ(json("18446744073709551615"), "18446744073709551615");
}

TEST(PythonText, FloatsAreThoseOfPython) {
  const auto json = [](double value) { return PythonJson(OrderedJson(value)); };
  EXPECT_EQ(json(2.5), "2.5");
  EXPECT_EQ(json(1.0), "1.0");
  EXPECT_EQ(json(-0.0), "-0.0");
  EXPECT_EQ(json(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(json(0.0001), "0.0001");
  EXPECT_EQ(json(0.00001), "1e-05");
  EXPECT_EQ(json(1.5e-7), "1.5e-07");
  EXPECT_EQ(json(1e15), "1000000000000000.0");
  EXPECT_EQ(json(9999999999999998.0), "9999999999999998.0");
  EXPECT_EQ(json(1e16), "1e+16");
  EXPECT_EQ(json(-1.25e300), "-1.25e+300");
  EXPECT_EQ(json(5e-324), "5e-324");
}

TEST(PythonText, StringIsThatOfPython) {
  EXPECT_EQ(PythonString("a"), "a");
  EXPECT_EQ(PythonString(true), "True");
  EXPECT_EQ(PythonString(false), "False");
  EXPECT_EQ(PythonString(nullptr), "None");
  EXPECT_EQ(PythonString(1e15), "1000000000000000.0");
  EXPECT_EQ(PythonString(3), "3");
}

}  // namespace
}  // namespace nestor
