#include "engine/checkpoint/checkpoint.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

class EveryCheckpoint : public testing::TestWithParam<std::string> {};

TEST_P(EveryCheckpoint, OpensWithEveryTensorInItsShape) {
  const auto checkpoint = Checkpoint::Open(GetParam());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelConfig& config = checkpoint->config();
  for (const TensorSpec& spec : TensorSchema(config)) {
    EXPECT_EQ(checkpoint->tensor(spec.name).shape, ShapeOf(spec, config, config.full)) << spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, EveryCheckpoint,
                         testing::Values(GoldenFolder("moe"), GoldenFolder("grouped-router"),
                                         GoldenFolder("dense"), GoldenFolder("uneven"),
                                         GoldenFolder("latent"), AbacusFolder()));

TEST(CheckpointTest, OrdinaryCheckpointIsOneSubmodelNamedFull) {
  const auto checkpoint = Checkpoint::Open(GoldenFolder("dense"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_FALSE(checkpoint->has_elastic_descriptor());
  ASSERT_EQ(checkpoint->elastic().submodels.size(), 1u);
  EXPECT_EQ(checkpoint->elastic().submodels[0].name, "full");
  EXPECT_EQ(checkpoint->elastic().submodels[0].layers, checkpoint->config().full.layers);
}

TEST(CheckpointTest, KeepsElementTypesAsStored) {
  const auto checkpoint = Checkpoint::Open(AbacusFolder());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensor(TensorName(TensorRole::kInProj, 0)).dtype, DType::kBF16);
  EXPECT_EQ(checkpoint->tensor(TensorName(TensorRole::kRouter, 1)).dtype, DType::kF32);
}

TEST(CheckpointTest, AcceptsF16) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditSafetensors("model.safetensors", [](Json& header, std::string&) {
    header.at("backbone.norm_f.weight").at("dtype") = "F16";
  });
  const auto checkpoint = Checkpoint::Open(editor.directory());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensor("backbone.norm_f.weight").dtype, DType::kF16);
}

TEST(CheckpointTest, GenerationConfigOverridesTokenIds) {
  const auto checkpoint = Checkpoint::Open(AbacusFolder());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->config().eos_token_ids, (std::vector<int>{2, 11}));
  EXPECT_EQ(checkpoint->config().bos_token_id, 1);
  EXPECT_FALSE(checkpoint->config().do_sample);
}

TEST(CheckpointTest, TensorsKeepTheirAddressAcrossMoves) {
  auto checkpoint = Checkpoint::Open(GoldenFolder("moe"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::string name = TensorName(TensorRole::kInProj, 0);
  const std::byte* const before = checkpoint->tensor(name).bytes.data();
  const Checkpoint moved = *std::move(checkpoint);
  EXPECT_EQ(moved.tensor(name).bytes.data(), before);
}

// Turns the experts of layer 1 into one tensor for each side, as native transformers keep them.
void StackExperts(Json& header, std::string& data) {
  constexpr std::string_view kExperts = "backbone.layers.1.mixer.experts.";
  Json stacked;
  std::string stacked_data;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    const bool is_expert = name.starts_with(kExperts);
    const std::string side = name.find("up_proj") != name.npos ? "up_proj" : "down_proj";
    Json& target = stacked[is_expert ? StrCat(kExperts, side) : name];
    if (target.is_null()) {
      target = {{"dtype", entry["dtype"]}, {"shape", entry["shape"]}, {"data_offsets", {0, 0}}};
      if (is_expert) target["shape"].insert(target["shape"].begin(), 8);
    }
    target["bytes"] =
        StrCat(target.value("bytes", ""), absl::BytesToHexString(data.substr(begin, end - begin)));
  }
  for (Json& entry : stacked) {
    const std::string bytes = absl::HexStringToBytes(entry["bytes"].get<std::string>());
    entry["data_offsets"] = {stacked_data.size(), stacked_data.size() + bytes.size()};
    entry.erase("bytes");
    stacked_data += bytes;
  }
  header = stacked;
  data = stacked_data;
}

TEST(CheckpointTest, ReadsExpertsStackedInOneTensor) {
  CheckpointEditor editor(GoldenFolder("latent"));
  const Checkpoint before = Checkpoint::Open(GoldenFolder("latent")).value();
  editor.EditSafetensors("model.safetensors", &StackExperts);
  const auto checkpoint = Checkpoint::Open(editor.directory());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (const TensorSpec& spec : TensorSchema(checkpoint->config())) {
    EXPECT_TRUE(checkpoint->tensor(spec.name).bytes == before.tensor(spec.name).bytes) << spec.name;
  }
}

TEST(CheckpointTest, TiedHeadNeedsNoTensor) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditJson("config.json", [](Json& config) { config["tie_word_embeddings"] = true; });
  editor.EditSafetensors("model.safetensors", [](Json& header, std::string&) {
    header["mtp.head"] = header.at("lm_head.weight");  // its bytes stay, for no one
    header.erase("lm_head.weight");
  });
  EXPECT_EQ(editor.Refusal(), "OK");
}

TEST(CheckpointTest, IndexGoesBeforeASingleFile) {
  CheckpointEditor editor(GoldenFolder("moe"));
  editor.Write("model.safetensors", "not looked at");
  EXPECT_EQ(editor.Refusal(), "OK");
}

TEST(CheckpointTest, RefusesJsonThatIsNone) {
  CheckpointEditor editor(GoldenFolder("moe"));
  const std::string config = ReadFile(editor.PathOf("config.json")).value();
  const auto refusal = [&](std::string_view number) {
    std::string text = config;
    text.replace(text.find("\"hidden_size\": 64"), 17, StrCat("\"hidden_size\": ", number));
    editor.Write("config.json", text);
    return editor.Refusal();
  };
  EXPECT_THAT(refusal("NaN"),
              testing::StartsWith("INVALID_ARGUMENT: config.json: expected JSON, found an error"));
  EXPECT_THAT(refusal("-Infinity"),
              testing::StartsWith("INVALID_ARGUMENT: config.json: expected JSON, found"));
  EXPECT_THAT(refusal("1e999"), testing::StartsWith("INVALID_ARGUMENT: config.json: expected JSON, found"));
  EXPECT_EQ(
      refusal("Infinity"),
      "INVALID_ARGUMENT: config.json: key 'hidden_size': expected a whole number from 1 to 1048576, found "
      "\"Infinity\"");
  EXPECT_EQ(refusal(StrCat(std::string(5000, '['), std::string(5000, ']'))),
            "INVALID_ARGUMENT: config.json: expected JSON nested at most 100 deep, found 5001");
}

TEST(CheckpointTest, RefusesFilesThatAreNone) {
  CheckpointEditor editor(GoldenFolder("moe"));
  editor.Write("elastic.json", "{");
  EXPECT_THAT(editor.Refusal(), testing::StartsWith("INVALID_ARGUMENT: elastic.json: expected JSON"));
  editor.Write("config.json", "");
  EXPECT_THAT(editor.Refusal(), testing::HasSubstr("config.json: "));
  editor.Remove("config.json");
  EXPECT_EQ(editor.Refusal(), "NOT_FOUND: config.json: cannot be opened: No such file or directory");
  std::filesystem::create_directory(editor.PathOf("config.json"));
  EXPECT_THAT(editor.Refusal(), testing::HasSubstr("config.json: "));
}

}  // namespace
}  // namespace nestor
