// Weights of a folder that do not fit its config or its index.
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kWeights = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kFirst = "model-00001-of-00002.safetensors";
constexpr std::string_view kSecond = "model-00002-of-00002.safetensors";
constexpr std::string_view kNorm = "backbone.norm_f.weight";

// Renames a tensor of a safetensors header.
void Rename(Json& header, std::string_view from, std::string_view to) {
  header[std::string(to)] = header.at(std::string(from));
  header.erase(std::string(from));
}

// Appends a tensor of zeros.
void Append(Json& header, std::string& data, const std::string& name, const std::string& dtype, int bytes) {
  header[name] = {{"dtype", dtype}, {"shape", {bytes}}, {"data_offsets", {data.size(), data.size() + bytes}}};
  data.append(bytes, '\0');
}

TEST(WeightsTest, RefusesTruncatedFile) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditBytes(kWeights, [](std::string& bytes) { bytes.resize(bytes.size() - 1); });
  EXPECT_THAT(editor.Refusal(), StartsWith("INVALID_ARGUMENT: model.safetensors: tensor '"));
  EXPECT_THAT(editor.Refusal(), HasSubstr("': expected data_offsets [begin, end] within "));
}

TEST(WeightsTest, RefusesEmptyFile) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.Write(kWeights, "");
  EXPECT_EQ(editor.Refusal(),
            "INVALID_ARGUMENT: model.safetensors: expected a safetensors file of at least 8 bytes, found 0");
}

TEST(WeightsTest, RefusesFolderInPlaceOfFile) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.Remove(kWeights);
  std::filesystem::create_directory(editor.PathOf(kWeights));
  EXPECT_EQ(editor.Refusal(), "FAILED_PRECONDITION: model.safetensors: expected a regular file");
}

TEST(WeightsTest, RefusesFolderWithoutWeights) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.Remove(kWeights);
  EXPECT_EQ(editor.Refusal(), StrCat("NOT_FOUND: ", editor.directory(),
                                     ": expected model.safetensors or model.safetensors.index.json, found "
                                     "neither"));
}

TEST(WeightsTest, RefusesWrongShape) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditSafetensors(kWeights, [](Json& header, std::string&) {
    header["backbone.embeddings.weight"]["shape"] = {60, 331};
  });
  EXPECT_EQ(editor.Refusal(),
            "INVALID_ARGUMENT: model.safetensors: tensor 'backbone.embeddings.weight': expected shape [331, "
            "60], found BF16 [60, 331]");
}

TEST(WeightsTest, RefusesMissingTensor) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditSafetensors(kWeights,
                         [](Json& header, std::string&) { Rename(header, kNorm, "mtp.norm.weight"); });
  EXPECT_EQ(editor.Refusal(),
            StrCat("INVALID_ARGUMENT: ", editor.directory(),
                   ": tensor 'backbone.norm_f.weight': expected shape [60], found no such tensor"));
}

TEST(WeightsTest, RefusesUnexpectedTensor) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditSafetensors(kWeights, [](Json& header, std::string& data) {
    Append(header, data, "backbone.layers.0.mixer.rope.weight", "BF16", 2);
    header["backbone.layers.0.mixer.rope.weight"]["shape"] = {1};
  });
  EXPECT_EQ(editor.Refusal(),
            "INVALID_ARGUMENT: model.safetensors: tensor 'backbone.layers.0.mixer.rope.weight': expected no "
            "such tensor, found BF16 [1]");
}

TEST(WeightsTest, RefusesUnknownDType) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditSafetensors(kWeights,
                         [](Json& header, std::string&) { header[std::string(kNorm)]["dtype"] = "F64"; });
  EXPECT_EQ(editor.Refusal(),
            "INVALID_ARGUMENT: model.safetensors: tensor 'backbone.norm_f.weight': expected a dtype of F32, "
            "BF16, F16, F8_E4M3, U8, found \"F64\"");
}

TEST(WeightsTest, RefusesOneTensorUnderTwoNames) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditSafetensors(kWeights, [](Json& header, std::string& data) {
    Append(header, data, "model.norm_f.weight", "U8", 120);
  });
  EXPECT_EQ(editor.Refusal(),
            "INVALID_ARGUMENT: model.safetensors: tensor 'model.norm_f.weight': expected "
            "'backbone.norm_f.weight' once, found it again");
}

TEST(WeightsTest, AcceptsOtherPrefixAndPredictionLayers) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditSafetensors(kWeights, [](Json& header, std::string& data) {
    Rename(header, kNorm, "model.norm_f.weight");
    Rename(header, "backbone.embeddings.weight", "model.embedding.weight");
    Append(header, data, "mtp.layers.0.weight", "U8", 3);
  });
  EXPECT_EQ(editor.Refusal(), "OK");
}

TEST(WeightsTest, TiedHeadIsTheEmbedding) {
  CheckpointEditor editor(GoldenFolder("dense"));
  editor.EditJson("config.json", [](Json& config) { config["tie_word_embeddings"] = true; });
  const Checkpoint checkpoint = Checkpoint::Open(editor.directory()).value();
  EXPECT_EQ(checkpoint.tensor("lm_head.weight").bytes.data(),
            checkpoint.tensor("backbone.embeddings.weight").bytes.data());
}

TEST(WeightsTest, RefusesTensorInTwoShards) {
  CheckpointEditor editor(GoldenFolder("moe"));
  editor.EditSafetensors(kSecond, [](Json& header, std::string& data) {
    Append(header, data, "backbone.embeddings.weight", "U8", 4);
  });
  EXPECT_EQ(
      editor.Refusal(),
      "INVALID_ARGUMENT: model-00002-of-00002.safetensors: tensor 'backbone.embeddings.weight': expected "
      "only tensors that the index maps to this file");
}

TEST(WeightsTest, RefusesTensorMappedToTheWrongShard) {
  CheckpointEditor editor(GoldenFolder("moe"));
  editor.EditJson(kIndex, [](Json& index) { index["weight_map"]["backbone.extra"] = std::string(kFirst); });
  EXPECT_EQ(
      editor.Refusal(),
      "INVALID_ARGUMENT: model-00001-of-00002.safetensors: tensor 'backbone.extra': expected here by the "
      "index, found nothing");
}

TEST(WeightsTest, RefusesMissingShard) {
  CheckpointEditor editor(GoldenFolder("moe"));
  editor.Remove(kSecond);
  EXPECT_EQ(editor.Refusal(),
            "NOT_FOUND: model-00002-of-00002.safetensors: cannot be opened: No such file or directory");
}

TEST(WeightsTest, RefusesShardOutsideTheFolder) {
  const auto refusal = [](const std::string& file) {
    CheckpointEditor editor(GoldenFolder("moe"));
    editor.EditJson(kIndex, [&](Json& index) { index["weight_map"]["lm_head.weight"] = file; });
    return editor.Refusal();
  };
  for (const std::string file : {"../other/model.safetensors", "/etc/passwd", "..", ".", "", "sub/x"}) {
    EXPECT_EQ(refusal(file), StrCat("INVALID_ARGUMENT: model.safetensors.index.json: key "
                                    "'weight_map.lm_head.weight': expected the name of a file in the folder, "
                                    "found \"",
                                    file, "\""));
  }
}

TEST(WeightsTest, RefusesBadIndex) {
  CheckpointEditor editor(GoldenFolder("moe"));
  editor.Write(kIndex, "{}");
  EXPECT_EQ(
      editor.Refusal(),
      "INVALID_ARGUMENT: model.safetensors.index.json: key 'weight_map': expected an object, found null");
  editor.Write(kIndex, "[]");
  EXPECT_THAT(editor.Refusal(),
              StartsWith("INVALID_ARGUMENT: model.safetensors.index.json: key 'weight_map'"));
  editor.Write(kIndex, "");
  EXPECT_THAT(editor.Refusal(), StartsWith("INVALID_ARGUMENT: model.safetensors.index.json: expected JSON"));
}

TEST(WeightsTest, RefusesWrongTotalSize) {
  CheckpointEditor editor(GoldenFolder("moe"));
  editor.EditJson(kIndex, [](Json& index) { index["metadata"]["total_size"] = 7; });
  EXPECT_THAT(
      editor.Refusal(),
      testing::MatchesRegex("INVALID_ARGUMENT: model.safetensors.index.json: key "
                            "'metadata.total_size': expected [0-9]+, the bytes of all tensors, found 7"));
}

TEST(WeightsTest, RefusesQuantisedWeightsByTheirMetadata) {
  EXPECT_EQ(CheckpointEditor(GoldenFolder("fp8")).Refusal(),
            "UNIMPLEMENTED: config.json: key 'quantization_config': expected BF16, F16 or F32 weights, found "
            "FP8 weights; 8-bit and 4-bit weights are not served yet");
  EXPECT_EQ(CheckpointEditor(GoldenFolder("nvfp4")).Refusal(),
            "UNIMPLEMENTED: hf_quant_config.json: expected BF16, F16 or F32 weights, found NVFP4 weights; "
            "8-bit and 4-bit weights are not served yet");
}

TEST(WeightsTest, RefusesQuantisedWeightsWithoutMetadata) {
  const auto refusal = [](std::string_view name) {
    CheckpointEditor editor(GoldenFolder(name));
    editor.Remove("hf_quant_config.json");
    editor.EditJson("config.json", [](Json& config) { config.erase("quantization_config"); });
    return editor.Refusal();
  };
  EXPECT_THAT(refusal("fp8"), testing::MatchesRegex(
                                  "UNIMPLEMENTED: model.safetensors: tensor '.*': expected BF16, F16 or F32 "
                                  "weights, found F8_E4M3 .*; 8-bit and 4-bit weights are not served yet"));
  EXPECT_THAT(
      refusal("nvfp4"),
      testing::MatchesRegex("UNIMPLEMENTED: model-.*: tensor '.*': expected BF16, F16 or F32 weights, "
                            "found U8 .*; 8-bit and 4-bit weights are not served yet"));
}

}  // namespace
}  // namespace nestor
