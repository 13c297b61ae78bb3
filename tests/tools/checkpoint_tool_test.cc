#include "tools/checkpoint_tool.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"
#include "tests/tools/run_tool.h"

namespace nestor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kTokenizer = AbacusFolder() + "/tokenizer.json";
const std::string kEncodings = NESTOR_TEST_DATA_DIR "/tokenizer/abacus-encodings.jsonl";

TEST(CheckpointToolTest, HelpSaysEverything) {
  const ToolOutcome help = RunTool({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"inspect DIR", "verify DIR", "slice DIR", "tokenize TOKENIZER_JSON"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
  }
  const ToolOutcome slice = RunTool({"slice", "--help"});
  EXPECT_EQ(slice.exit_code, 0);
  EXPECT_THAT(slice.out, StartsWith("usage: nestor-checkpoint slice DIR --submodel NAME -o OUT\n"));
}

TEST(CheckpointToolTest, MisuseIsRefusedWithUsage) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "usage: nestor-checkpoint COMMAND"},
      {{"convert"}, "unknown command convert"},
      {{"inspect"}, "expected one checkpoint folder, found 0"},
      {{"inspect", "a", "b"}, "expected one checkpoint folder, found 2"},
      {{"inspect", "a", "--jsno"}, "unknown flag --jsno"},
      {{"inspect", "a", "--json=yes"}, "--json takes no value"},
      {{"inspect", "a", "--json", "--json"}, "--json given twice"},
      {{"verify"}, "expected one or more checkpoint folders, found none"},
      {{"verify", "a", "--tolerance"}, "--tolerance needs a value, NUMBER"},
      {{"verify", "a", "--tolerance", "wide"}, "--tolerance: expected a number, 0 or more, found 'wide'"},
      {{"verify", "a", "--tolerance=nan"}, "--tolerance: expected a number, 0 or more, found 'nan'"},
      {{"verify", "a", "--tolerance=-1"}, "--tolerance: expected a number, 0 or more, found '-1'"},
      {{"slice", "a", "-o", "b"}, "--submodel is needed"},
      {{"slice", "a", "--submodel", "x"}, "--output is needed"},
      {{"slice", "a", "--submodel=", "-o", "b"}, "--submodel is needed"},
      {{"tokenize", "a"}, "expected a tokenizer.json and either a text or --golden"},
      {{"tokenize", "a", "text", "--golden", "b"}, "expected a tokenizer.json and either a text or --golden"},
      {{"tokenize", "a", "-x"}, "unknown flag -x"},
  };
  for (const auto& [arguments, message] : cases) {
    const ToolOutcome outcome = RunTool(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(message), HasSubstr("usage: nestor-checkpoint")));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(CheckpointToolTest, OutputThatCannotBeWrittenIsAFailure) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  EXPECT_EQ(RunCheckpointTool({"inspect", AbacusFolder()}, full, err), 1);
  EXPECT_EQ(err.str(), "nestor-checkpoint inspect: the output cannot be written\n");
}

TEST(CheckpointToolTest, FailuresAreNotMisuse) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"inspect", folder.path()},
           {"verify", folder.path()},
           {"slice", folder.path(), "--submodel", "x", "-o", folder.path() + "/out"},
           {"tokenize", folder.path() + "/tokenizer.json", "text"}}) {
    const ToolOutcome outcome = RunTool(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << arguments[0];
    EXPECT_THAT(outcome.err, AllOf(StartsWith("nestor-checkpoint " + arguments[0] + ": " + folder.path()),
                                   Not(HasSubstr("usage"))));
  }
}

TEST(InspectTest, PrintsLayersAndSubmodels) {
  const ToolOutcome outcome = RunTool({"inspect", AbacusFolder()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("12 layers, vocabulary 384, context 4096"));
  EXPECT_THAT(outcome.out, HasSubstr("153 tensors BF16"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex(" 1 moe +21 +298408 +8x96 \\+ 160 +8x64 \\+ 160 +8x32 \\+ 160\n"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("1.2m +96 +12 +1242624 +873984 +2493008 +186880 +1024\n"));
}

TEST(InspectTest, NamesSkippedLayers) {
  EXPECT_THAT(RunTool({"inspect", GoldenFolder("uneven")}).out,
              testing::ContainsRegex(" 2 mamba +9 +26098 +6 heads +4 heads +skipped\n"));
}

TEST(InspectTest, PrintsJson) {
  const ToolOutcome outcome = RunTool({"inspect", "--json", AbacusFolder()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = ParseJson(outcome.out, "report").value();
  EXPECT_EQ(report["elastic"], true);
  EXPECT_EQ(report["layers"].size(), 12u);
  EXPECT_EQ(report["layers"][3]["kind"], "attention");
  EXPECT_EQ(report["tensors"].size(), 163u);
  EXPECT_EQ(report["tensors"][0],
            Json({{"name", "backbone.embeddings.weight"}, {"dtype", "BF16"}, {"shape", {384, 160}}}));
  const Json& small = report["submodels"][2];
  EXPECT_EQ(small["name"], "0.5m");
  EXPECT_EQ(small["total_parameters"], 503952);
  EXPECT_EQ(small["active_parameters"], 411792);
  EXPECT_EQ(small["weight_bytes"], 1011824);
  EXPECT_EQ(small["state_bytes_per_sequence"], 186880);
  EXPECT_EQ(small["kv_bytes_per_token"], 1024);
  EXPECT_EQ(small["layers"][1]["moe_intermediate_size"], 32);
  EXPECT_FALSE(small["layers"][1].contains("mamba_num_heads"));
}

TEST(TokenizeTest, PrintsTokens) {
  const ToolOutcome outcome = RunTool({"tokenize", kTokenizer, "H <|im_end|>"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "    104  \"H\"\n     64  \" \"\n     11  \"<|im_end|>\"\n");
  EXPECT_EQ(RunTool({"tokenize", kTokenizer, ""}).out, "");
  EXPECT_THAT(RunTool({"tokenize", kTokenizer, "--", "--golden"}).out, HasSubstr("\"-\"\n"));
}

TEST(TokenizeTest, ComparesWithGoldenLines) {
  const ToolOutcome outcome = RunTool({"tokenize", kTokenizer, "--golden", kEncodings});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "238 lines, 0 differ\n");
}

TEST(TokenizeTest, FailsWhereALineDiffers) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/lines.jsonl";
  ASSERT_TRUE(
      WriteFile(path, R"({"text": "H", "ids": [105], "decoded": "H", "decoded_skip_special": "H"})").ok());
  const ToolOutcome outcome = RunTool({"tokenize", kTokenizer, "--golden", path});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("lines.jsonl:1: ids: expected [105], found [104]"),
                                 HasSubstr("1 lines, 1 differ\n")));
  EXPECT_THAT(outcome.err, HasSubstr("lines.jsonl: 1 of 1 lines differ"));
}

TEST(TokenizeTest, FailsWithoutLines) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/lines.jsonl";
  ASSERT_TRUE(WriteFile(path, "").ok());
  EXPECT_EQ(RunTool({"tokenize", kTokenizer, "--golden", path}).exit_code, 1);
}

}  // namespace
}  // namespace nestor
