#include "engine/checkpoint/checkpoint.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_folder.h"

namespace nestor {
namespace {

using testing::HasSubstr;

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

TEST(CheckpointTest, ReadsNamesOfNativeTransformers) {
  CheckpointFolder folder("dense");
  folder.EditTensors([](OwnedTensors& tensors) {
    OwnedTensors renamed;
    for (auto& [name, tensor] : tensors) {
      const bool is_backbone = name.starts_with("backbone.");
      renamed[is_backbone ? "model." + name.substr(9) : name] = std::move(tensor);
    }
    renamed["model.embedding.weight"] = std::move(renamed.extract("model.embeddings.weight").mapped());
    tensors = std::move(renamed);
  });
  EXPECT_EQ(folder.OpenError(), "");
}

TEST(CheckpointTest, ReadsExpertsStackedInOneTensor) {
  CheckpointFolder folder("latent");
  const OwnedTensors before = ReadOwnedTensors(folder.file("model.safetensors"));
  folder.EditTensors([](OwnedTensors& tensors) {
    for (const std::string side : {"up_proj", "down_proj"}) {
      OwnedTensor& stack = tensors["backbone.layers.1.mixer.experts." + side];
      for (int expert = 0; expert < 8; ++expert) {
        const std::string name =
            "backbone.layers.1.mixer.experts." + std::to_string(expert) + "." + side + ".weight";
        const OwnedTensor one = std::move(tensors.extract(name).mapped());
        stack.dtype = one.dtype;
        stack.shape = {8, one.shape[0], one.shape[1]};
        stack.bytes.insert(stack.bytes.end(), one.bytes.begin(), one.bytes.end());
      }
    }
  });
  const auto checkpoint = Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (int expert = 0; expert < 8; ++expert) {
    const std::string name = TensorName(TensorRole::kExpertDown, 1, expert);
    const Tensor& tensor = checkpoint->tensor(name);
    EXPECT_EQ(std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end()), before.at(name).bytes);
  }
}

TEST(CheckpointTest, TiedHeadIsTheEmbedding) {
  for (const bool is_stored_too : {false, true}) {
    CheckpointFolder folder("dense");
    folder.EditJson("config.json", [](Json& config) { config["tie_word_embeddings"] = true; });
    if (!is_stored_too) folder.EditTensors([](OwnedTensors& tensors) { tensors.erase("lm_head.weight"); });
    const auto checkpoint = Checkpoint::Open(folder.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->tensor("lm_head.weight").bytes.data(),
              checkpoint->tensor("backbone.embeddings.weight").bytes.data());
  }
}

TEST(CheckpointTest, IgnoresMultiTokenPrediction) {
  CheckpointFolder folder("dense");
  folder.EditTensors([](OwnedTensors& tensors) {
    tensors["mtp.layers.0.enorm.weight"] = tensors.at("backbone.norm_f.weight");
  });
  EXPECT_EQ(folder.OpenError(), "");
}

TEST(CheckpointTest, AcceptsEveryFloatType) {
  CheckpointFolder folder("dense");
  folder.EditTensors([](OwnedTensors& tensors) { tensors.at("backbone.norm_f.weight").dtype = DType::kF16; });
  const auto checkpoint = Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensor("backbone.norm_f.weight").dtype, DType::kF16);
}

TEST(CheckpointTest, IndexGoesBeforeASingleFile) {
  CheckpointFolder folder("moe");
  folder.Write("model.safetensors", "not looked at");
  EXPECT_EQ(folder.OpenError(), "");
}

TEST(CheckpointTest, RefusesQuantisedWeightsByTheirMetadata) {
  EXPECT_EQ(CheckpointFolder("fp8").OpenError(),
            "config.json: key 'quantization_config': expected BF16, F16 or F32 weights, found FP8 weights; "
            "8-bit and 4-bit weights are not served yet");
  EXPECT_EQ(CheckpointFolder("nvfp4").OpenError(),
            "hf_quant_config.json: expected BF16, F16 or F32 weights, found NVFP4 weights; 8-bit and 4-bit "
            "weights are not served yet");
  EXPECT_EQ(Checkpoint::Open(GoldenFolder("fp8")).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CheckpointTest, RefusesQuantisedWeightsByTheirElementType) {
  for (const auto& [golden, found] :
       {std::pair{"fp8", "found F8_E4M3 ["}, std::pair{"nvfp4", "found U8 ["}}) {
    CheckpointFolder folder(golden);
    folder.Remove("hf_quant_config.json");
    folder.EditJson("config.json", [](Json& config) { config.erase("quantization_config"); });
    EXPECT_THAT(folder.OpenError(), HasSubstr(found));
    EXPECT_THAT(folder.OpenError(), HasSubstr("8-bit and 4-bit weights are not served yet"));
    EXPECT_EQ(Checkpoint::Open(folder.path()).status().code(), absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace nestor
