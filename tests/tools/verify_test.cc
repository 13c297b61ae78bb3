// `nestor-checkpoint verify` on the golden checkpoints, and on broken copies of them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"
#include "tests/tools/run_tool.h"

namespace nestor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ToolOutcome Verify(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "verify");
  return RunTool(arguments);
}

class EveryGolden : public testing::TestWithParam<std::string> {};

TEST_P(EveryGolden, IsWithinTheTolerance) {
  const ToolOutcome outcome = Verify({GetParam()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("tolerance 2.00e-04: passed\n"), Not(HasSubstr("FAILED"))));
}

INSTANTIATE_TEST_SUITE_P(Golden, EveryGolden,
                         testing::Values(GoldenFolder("dense"), GoldenFolder("moe"), GoldenFolder("latent"),
                                         GoldenFolder("grouped-router"), GoldenFolder("uneven"),
                                         AbacusFolder()),
                         FolderTestName);

// Changes the exponent of one stored BF16 weight.
void ChangeOneWeight(CheckpointEditor& editor, const std::string& tensor) {
  editor.EditSafetensors("model.safetensors", [&](Json& header, std::string& data) {
    data[header[tensor]["data_offsets"][0].get<size_t>() + 1] ^= 1;
  });
}

TEST(VerifyTest, FailsAfterOneWeightByteChanged) {
  for (const char* tensor : {"backbone.norm_f.weight", "backbone.layers.0.mixer.out_proj.weight",
                             "backbone.layers.3.mixer.k_proj.weight"}) {
    CheckpointEditor editor(GoldenFolder("dense"));
    ChangeOneWeight(editor, tensor);
    const ToolOutcome outcome = Verify({editor.directory()});
    EXPECT_EQ(outcome.exit_code, 1) << tensor;
    EXPECT_THAT(outcome.out, HasSubstr("  FAILED\n"));
    EXPECT_EQ(outcome.err,
              StrCat("nestor-checkpoint verify: beyond the tolerance: ", editor.directory(), "\n"));
  }
}

TEST(VerifyTest, TheToleranceCounts) {
  EXPECT_EQ(Verify({GoldenFolder("dense"), "--tolerance", "1e-9"}).exit_code, 1);
  EXPECT_EQ(Verify({GoldenFolder("dense"), "--tolerance=0.001"}).exit_code, 0);
}

TEST(VerifyTest, OneBadFolderAmongManyFails) {
  CheckpointEditor editor(GoldenFolder("dense"));
  ChangeOneWeight(editor, "backbone.norm_f.weight");
  const ToolOutcome outcome = Verify({editor.directory(), GoldenFolder("dense")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr(editor.directory() + "\n"), HasSubstr(GoldenFolder("dense") + "\n"),
                    HasSubstr(": passed\n"), HasSubstr(": FAILED\n")));
}

TEST(VerifyTest, RefusesQuantisedWeightsAndFoldersWithoutGolden) {
  EXPECT_THAT(Verify({GoldenFolder("fp8")}).err, HasSubstr("found FP8 weights"));
  EXPECT_THAT(Verify({GoldenFolder("nvfp4")}).err, HasSubstr("found NVFP4 weights"));
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.Remove("golden.json");
  const ToolOutcome outcome = Verify({editor.directory()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("golden.json: cannot be opened: No such file or directory"));
}

}  // namespace
}  // namespace nestor
