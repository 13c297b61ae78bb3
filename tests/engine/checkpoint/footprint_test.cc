#include "engine/checkpoint/footprint.h"

#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

// Nemotron-3-Nano-30B-A3B.
Json NanoConfig() {
  return {{"model_type", "nemotron_h"},
          {"vocab_size", 131072},
          {"hidden_size", 2688},
          {"num_hidden_layers", 52},
          {"hybrid_override_pattern", "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"},
          {"mamba_num_heads", 64},
          {"mamba_head_dim", 64},
          {"ssm_state_size", 128},
          {"n_groups", 8},
          {"conv_kernel", 4},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 2},
          {"head_dim", 128},
          {"max_position_embeddings", 262144},
          {"n_routed_experts", 128},
          {"num_experts_per_tok", 6},
          {"moe_intermediate_size", 1856},
          {"n_shared_experts", 1},
          {"moe_shared_expert_intermediate_size", 3712}};
}

ParameterCount CountNano(int hidden_size, int expert_width) {
  const auto config = ParseModelConfig(NanoConfig(), "config.json");
  EXPECT_TRUE(config.ok()) << config.status();
  const Json elastic = {
      {"format", "nestor.elastic/1"},
      {"submodels",
       {{{"name", "cut"}, {"hidden_size", hidden_size}, {"moe_intermediate_size", expert_width}}}}};
  const auto descriptor = ParseElasticDescriptor(elastic, "elastic.json", *config);
  EXPECT_TRUE(descriptor.ok()) << descriptor.status();
  return CountParameters(*config, descriptor->submodels[0]);
}

TEST(CountParametersTest, EqualsThePublishedCountsOfNano) {
  const ParameterCount full = CountNano(2688, 1856);
  EXPECT_EQ(full.total, 31'577'940'288);
  EXPECT_EQ(full.active, 3'580'076'352);
}

TEST(CountParametersTest, NestedSizesOfNanoRoundToTheirNames) {
  const ParameterCount medium = CountNano(2112, 1792);
  EXPECT_NEAR(static_cast<double>(medium.total), 24.02e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(medium.active), 2.776e9, 0.001e9);
  const ParameterCount small = CountNano(1856, 960);
  EXPECT_NEAR(static_cast<double>(small.total), 12.01e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(small.active), 2.013e9, 0.001e9);
}

TEST(CountParametersTest, FewerExpertsThanATokenMayUse) {
  auto config = ParseModelConfig(NanoConfig(), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  SubmodelShape submodel = config->full;
  for (LayerShape& layer : submodel.layers) {
    if (layer.kind == LayerKind::kMoe) layer.routed_experts = 6;
  }
  const ParameterCount count = CountParameters(*config, submodel);
  EXPECT_EQ(count.total, count.active);
}

TEST(FootprintTest, CountsTheSubmodelsOfAbacus) {
  const auto checkpoint = Checkpoint::Open(AbacusFolder());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const struct {
    int64_t total, active;
  } expected[] = {{2'473'280, 1'551'680}, {1'242'624, 873'984}, {503'952, 411'792}};
  ASSERT_EQ(checkpoint->elastic().submodels.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const Footprint footprint = FootprintOf(*checkpoint, checkpoint->elastic().submodels[i]);
    EXPECT_EQ(footprint.total_parameters, expected[i].total);
    EXPECT_EQ(footprint.active_parameters, expected[i].active);
    // Five Mamba layers of 8 heads × 32, state 32, two groups; two attention layers of two KV heads × 32.
    EXPECT_EQ(footprint.state_bytes, 5 * 4 * (8 * 32 * 32 + 3 * (8 * 32 + 2 * 2 * 32)));
    EXPECT_EQ(footprint.kv_bytes_per_token, 2 * 4 * 2 * 2 * 32);
  }
}

TEST(FootprintTest, FullModelWeighsAllStoredBytes) {
  const auto checkpoint = Checkpoint::Open(AbacusFolder());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto file = SafetensorsFile::Open(AbacusFolder() + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  int64_t bytes = 0;
  for (const auto& [name, tensor] : file->tensors()) bytes += static_cast<int64_t>(tensor.bytes.size());
  EXPECT_EQ(FootprintOf(*checkpoint, checkpoint->config().full).weight_bytes, bytes);
}

TEST(FootprintTest, SkippedLayersCarryNoState) {
  const auto checkpoint = Checkpoint::Open(GoldenFolder("uneven"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const SubmodelShape& shallow = checkpoint->elastic().submodels[2];
  ASSERT_EQ(shallow.name, "shallow");
  const int64_t layer = 4 * (6 * 16 * 24 + 3 * (6 * 16 + 2 * 2 * 24));
  EXPECT_EQ(FootprintOf(*checkpoint, checkpoint->config().full).state_bytes, 3 * layer);
  EXPECT_EQ(FootprintOf(*checkpoint, shallow).state_bytes, 2 * layer);
}

}  // namespace
}  // namespace nestor
