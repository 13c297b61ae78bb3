#include "engine/text/tokenizer_golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/file.h"
#include "tests/engine/text/test_tokenizer.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;

TEST(TokenizerGolden, ReportsDifferences) {
  const std::string path = ::testing::TempDir() + "/golden.jsonl";
  std::string lines;
  for (int i = 0; i < 12; ++i) {
    lines += R"({"text": "a", "ids": [1], "decoded": "<s>", "decoded_skip_special": ""})";
    lines += "\n";
  }
  ASSERT_TRUE(WriteFile(path, lines).ok());
  const auto report = CheckTokenizerGolden(AbacusTokenizer(), path);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->lines, 12);
  EXPECT_EQ(report->failures, 12);
  ASSERT_EQ(report->messages.size(), 10u);
  EXPECT_THAT(report->messages[0], HasSubstr("golden.jsonl:1: ids: expected [1], found"));
  EXPECT_TRUE(absl::IsNotFound(CheckTokenizerGolden(AbacusTokenizer(), path + ".absent").status()));
}

}  // namespace
}  // namespace nestor
