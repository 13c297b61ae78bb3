#include "engine/checkpoint/slice.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "engine/base/file.h"
#include "engine/checkpoint/footprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

using testing::HasSubstr;

Checkpoint OpenOrDie(const std::string& folder) {
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return *std::move(checkpoint);
}

// The kept elements, gathered index by index: slower than the writer and written differently.
std::vector<std::byte> GatherByIndex(const Tensor& tensor, const TensorSpec& spec, const ModelConfig& config,
                                     const SubmodelShape& submodel) {
  std::vector<int64_t> offsets = {0};  // of elements, in the parent
  for (size_t dimension = 0; dimension < spec.axes.size(); ++dimension) {
    std::vector<int64_t> next;
    for (const int64_t offset : offsets) {
      for (const Extent& extent : Kept(spec.axes[dimension], spec.layer, config, submodel)) {
        for (int64_t i = extent.begin; i < extent.begin + extent.count; ++i) {
          next.push_back(offset * tensor.shape[dimension] + i);
        }
      }
    }
    offsets = std::move(next);
  }
  const int64_t size = ByteSize(tensor.dtype);
  std::vector<std::byte> bytes;
  for (const int64_t offset : offsets) {
    for (int64_t i = 0; i < size; ++i) bytes.push_back(tensor.bytes[offset * size + i]);
  }
  return bytes;
}

class EverySlice : public testing::TestWithParam<std::string> {};

TEST_P(EverySlice, HoldsTheKeptValuesAndNothingElse) {
  const Checkpoint parent = OpenOrDie(GetParam());
  for (const SubmodelShape& submodel : parent.elastic().submodels) {
    const TemporaryFolder output;
    ASSERT_TRUE(WriteSlice(parent, submodel.name, output.path()).ok());
    const Checkpoint slice = OpenOrDie(output.path());
    int next_layer = 0;
    std::vector<int> new_index;
    for (const LayerShape& layer : submodel.layers) new_index.push_back(layer.active ? next_layer++ : -1);
    EXPECT_EQ(slice.config().num_layers(), next_layer);
    for (const TensorSpec& spec : TensorSchema(parent.config())) {
      if (!Uses(submodel, spec)) continue;
      const int layer = spec.layer < 0 ? -1 : new_index[spec.layer];
      const Tensor& found = slice.tensor(TensorName(spec.role, layer, spec.expert));
      const Tensor& from = parent.tensor(spec.name);
      EXPECT_EQ(found.dtype, from.dtype) << spec.name;
      EXPECT_EQ(std::vector<std::byte>(found.bytes.begin(), found.bytes.end()),
                GatherByIndex(from, spec, parent.config(), submodel))
          << submodel.name << " " << spec.name;
    }
  }
}

TEST_P(EverySlice, WeighsWhatTheSubmodelWeighs) {
  const Checkpoint parent = OpenOrDie(GetParam());
  for (const SubmodelShape& submodel : parent.elastic().submodels) {
    const TemporaryFolder output;
    ASSERT_TRUE(WriteSlice(parent, submodel.name, output.path()).ok());
    const Checkpoint slice = OpenOrDie(output.path());
    ASSERT_EQ(slice.elastic().submodels.size(), 1u);
    const Footprint expected = FootprintOf(parent, submodel);
    const Footprint found = FootprintOf(slice, slice.config().full);
    EXPECT_EQ(found.total_parameters, expected.total_parameters);
    EXPECT_EQ(found.active_parameters, expected.active_parameters);
    EXPECT_EQ(found.weight_bytes, expected.weight_bytes);
    EXPECT_EQ(found.state_bytes, expected.state_bytes);
    EXPECT_EQ(found.kv_bytes_per_token, expected.kv_bytes_per_token);
  }
}

INSTANTIATE_TEST_SUITE_P(Elastic, EverySlice,
                         testing::Values(GoldenFolder("moe"), GoldenFolder("grouped-router"),
                                         GoldenFolder("dense"), GoldenFolder("uneven"),
                                         GoldenFolder("latent"), AbacusFolder()));

Json SliceConfigOf(const std::string& folder, std::string_view submodel) {
  const TemporaryFolder output;
  EXPECT_TRUE(WriteSlice(OpenOrDie(folder), submodel, output.path()).ok());
  return Json::parse(*ReadFile(output.path() + "/config.json"));
}

TEST(SliceTest, UniformSubmodelIsAnOrdinaryConfigWithoutLists) {
  const Json config = SliceConfigOf(GoldenFolder("moe"), "small");
  EXPECT_EQ(config["hidden_size"], 40);
  EXPECT_EQ(config["moe_intermediate_size"], 20);
  EXPECT_EQ(config["n_routed_experts"], 8);
  EXPECT_EQ(config["mamba_num_heads"], 6);
  EXPECT_EQ(config["hybrid_override_pattern"], "MEM*E-ME");
  for (const auto& [key, value] : config.items()) {
    EXPECT_TRUE(!value.is_array() || key == "architectures") << key;
  }
}

TEST(SliceTest, LayersThatDifferAreWrittenAsLists) {
  const Json config = SliceConfigOf(GoldenFolder("uneven"), "uneven");
  EXPECT_EQ(config["moe_intermediate_size"], Json::parse("[null, 48, null, null, 24, null, null, 36]"));
  EXPECT_EQ(config["mamba_num_heads"], Json::parse("[6, null, 4, null, null, null, 4, null]"));
  EXPECT_EQ(config["num_attention_heads"], 2);
}

TEST(SliceTest, SkippedLayersAreRenumbered) {
  const Json config = SliceConfigOf(GoldenFolder("uneven"), "shallow");
  EXPECT_EQ(config["hybrid_override_pattern"], "ME*EME");
  EXPECT_EQ(config["num_hidden_layers"], 6);
}

TEST(SliceTest, KeepsTheSpellingOfTheLayerList) {
  const Json config = SliceConfigOf(GoldenFolder("dense"), "full");
  EXPECT_FALSE(config.contains("hybrid_override_pattern"));
  EXPECT_EQ(config["layers_block_type"].size(), 7u);
}

TEST(SliceTest, KeepsTokenizerTemplateThinkingAndItsOwnQuality) {
  const TemporaryFolder output;
  const Checkpoint parent = OpenOrDie(AbacusFolder());
  ASSERT_TRUE(WriteSlice(parent, "1.2m", output.path()).ok());
  for (const char* name : {"tokenizer.json", "chat_template.jinja", "generation_config.json"}) {
    EXPECT_EQ(*ReadFile(output.path() + "/" + name), *ReadFile(AbacusFolder() + "/" + name)) << name;
  }
  const Checkpoint slice = OpenOrDie(output.path());
  EXPECT_EQ(slice.elastic().submodels[0].name, "1.2m");
  ASSERT_TRUE(slice.elastic().thinking.has_value());
  EXPECT_EQ(slice.elastic().thinking->close, "\n</think>");
  EXPECT_EQ(slice.elastic().quality.size(), 7u);  // six thinking limits, and without thinking
  for (const QualityRow& row : slice.elastic().quality) EXPECT_EQ(row.answer_submodel, "1.2m");
}

TEST(SliceTest, SharedExpertsBecomeOneOfTheirWidth) {
  CheckpointEditor folder(GoldenFolder("latent"));
  folder.EditJson("config.json", [](Json& config) {
    config["n_shared_experts"] = 2;
    config["moe_shared_expert_intermediate_size"] = 36;
  });
  const Json config = SliceConfigOf(folder.directory(), "medium");
  EXPECT_EQ(config["n_shared_experts"], 1);
  EXPECT_EQ(config["moe_shared_expert_intermediate_size"], 72);
}

TEST(SliceTest, TimeStepLimitStaysJson) {
  CheckpointEditor folder(GoldenFolder("dense"));
  folder.EditBytes("config.json", [](std::string& config) {
    config.replace(config.find('{'), 1, R"({"time_step_limit": [0.0, Infinity],)");
  });
  EXPECT_FALSE(SliceConfigOf(folder.directory(), "full").contains("time_step_limit"));
}

TEST(SliceTest, UnknownSubmodelNamesTheKnownOnes) {
  const TemporaryFolder output;
  const absl::Status status = WriteSlice(OpenOrDie(GoldenFolder("moe")), "tiny", output.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected a submodel of large, medium, small, found 'tiny'"));
}

TEST(SliceTest, LeavesAFullFolderAlone) {
  const TemporaryFolder output;
  ASSERT_TRUE(WriteFile(output.path() + "/notes.txt", "mine").ok());
  const absl::Status status = WriteSlice(OpenOrDie(GoldenFolder("moe")), "small", output.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected no such folder or an empty one"));
  EXPECT_EQ(*ReadFile(output.path() + "/notes.txt"), "mine");
}

TEST(SliceTest, FailureLeavesNothingBehind) {
  CheckpointEditor parent(GoldenFolder("dense"));
  parent.Write("tokenizer.json", "{}");
  const Checkpoint checkpoint = OpenOrDie(parent.directory());
  parent.Remove("tokenizer.json");
  std::filesystem::create_directory(parent.PathOf("tokenizer.json"));  // cannot be copied as a file
  const TemporaryFolder around;
  const absl::Status status = WriteSlice(checkpoint, "full", around.path() + "/slice");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("tokenizer.json"));
  EXPECT_TRUE(std::filesystem::is_empty(around.path()));
}

TEST(SliceTest, AFileInTheWayIsNotOverwritten) {
  const TemporaryFolder around;
  ASSERT_TRUE(WriteFile(around.path() + "/slice", "").ok());
  EXPECT_FALSE(WriteSlice(OpenOrDie(GoldenFolder("dense")), "full", around.path() + "/slice").ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(around.path() + "/slice"));
}

}  // namespace
}  // namespace nestor
