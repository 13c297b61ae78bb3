// A slice served as a checkpoint of its own gives the logits of the view it was cut from, bit for bit.
#include <memory>
#include <numeric>

#include "engine/backend/cpu/cpu_executor.h"
#include "engine/model/executor.h"
#include "engine/model/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"
#include "tests/tools/run_tool.h"

namespace nestor {
namespace {

constexpr int kTokens = 150;  // over several chunks and pages
constexpr int kPages = (kTokens + kPageTokens - 1) / kPageTokens;

// Logits of every position, the tokens in chunks of `chunk`.
std::vector<float> Logits(const Checkpoint& checkpoint, int submodel, const std::vector<int32_t>& tokens,
                          int chunk) {
  const Model model = BindModel(checkpoint);
  const std::unique_ptr<Executor> executor = CreateCpuExecutor(model, {1, kPages, kTokens, kTokens});
  std::vector<int> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  executor->ResetSlot(0);
  std::vector<float> logits;
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const absl::Span<const int32_t> part = absl::MakeConstSpan(tokens).subspan(begin, chunk);
    const StepSequence sequence{0,    submodel, static_cast<int>(begin),
                                part, pages,    static_cast<int>(part.size())};
    for (const absl::Span<const float> row : executor->Step({sequence})) {
      logits.insert(logits.end(), row.begin(), row.end());
    }
  }
  return logits;
}

std::vector<int32_t> SomeTokens(int vocabulary) {
  std::vector<int32_t> tokens(kTokens);
  for (int i = 0; i < kTokens; ++i) tokens[i] = (i * i * 37 + i * 11 + 5) % vocabulary;
  return tokens;
}

ToolOutcome Slice(const std::string& folder, const std::string& submodel, const std::string& output) {
  return RunTool({"slice", folder, "--submodel", submodel, "-o", output});
}

class EverySliceServed : public testing::TestWithParam<std::string> {};

TEST_P(EverySliceServed, EqualsTheView) {
  const Checkpoint checkpoint = Checkpoint::Open(GetParam()).value();
  const std::vector<int32_t> tokens = SomeTokens(checkpoint.config().vocab_size);
  const std::vector<SubmodelShape>& submodels = checkpoint.elastic().submodels;
  for (size_t i = 0; i < submodels.size(); ++i) {
    const TemporaryFolder folder;
    ASSERT_EQ(Slice(GetParam(), submodels[i].name, folder.path()).exit_code, 0);
    const absl::StatusOr<Checkpoint> slice = Checkpoint::Open(folder.path());
    ASSERT_TRUE(slice.ok()) << slice.status();
    for (const int chunk : {1, 64, kTokens}) {
      const std::vector<float> expected = Logits(checkpoint, static_cast<int>(i), tokens, chunk);
      ASSERT_EQ(expected.size(), static_cast<size_t>(kTokens) * checkpoint.config().vocab_size);
      EXPECT_TRUE(Logits(*slice, 0, tokens, chunk) == expected)
          << submodels[i].name << ", chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Elastic, EverySliceServed,
                         testing::Values(GoldenFolder("moe"), GoldenFolder("latent"),
                                         GoldenFolder("grouped-router"), GoldenFolder("uneven"),
                                         AbacusFolder()),
                         FolderTestName);

TEST(SliceCommandTest, SaysWhatItWrote) {
  const TemporaryFolder folder;
  const std::string output = folder.path() + "/deep/small/";
  const ToolOutcome outcome = RunTool({"slice", GoldenFolder("moe"), "--submodel=small", "--output", output});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, StrCat(output, ": submodel 'small' of ", GoldenFolder("moe"), "\n"));
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(FileExists(folder.path() + "/deep/small/model.safetensors"));
}

TEST(SliceCommandTest, RefusesUnknownSubmodelAndUsedFolder) {
  const TemporaryFolder folder;
  const ToolOutcome unknown = Slice(GoldenFolder("moe"), "tiny", folder.path());
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err,
              testing::HasSubstr(": expected a submodel of large, medium, small, found 'tiny'\n"));
  const ToolOutcome used = Slice(GoldenFolder("moe"), "small", GoldenFolder("dense"));
  EXPECT_EQ(used.exit_code, 1);
  EXPECT_EQ(used.err, StrCat("nestor-checkpoint slice: ", GoldenFolder("dense"),
                             ": expected no such folder or an empty one\n"));
}

}  // namespace
}  // namespace nestor
