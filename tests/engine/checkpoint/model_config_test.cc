#include "engine/checkpoint/model_config.h"

#include <cmath>
#include <functional>
#include <utility>

#include "engine/base/file.h"
#include "engine/checkpoint/untrusted_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Layers MEM*E-ME: all four kinds.
Json MoeConfig() { return Json::parse(*ReadFile(GoldenFolder("moe") + "/config.json")); }

absl::StatusOr<ModelConfig> Parse(const std::function<void(Json&)>& edit) {
  Json json = MoeConfig();
  edit(json);
  return ParseModelConfig(json, "config.json");
}

// "" where the config is accepted.
std::string ErrorOf(const std::function<void(Json&)>& edit) {
  const auto config = Parse(edit);
  return config.ok() ? "" : std::string(config.status().message());
}

std::string ErrorWith(const char* key, const Json& value) {
  return ErrorOf([&](Json& json) { json[key] = value; });
}

void Rename(Json& json, const char* from, const char* to) {
  json[to] = json.at(from);
  json.erase(from);
}

TEST(ModelConfigTest, ReadsEveryDimension) {
  const auto config = ParseModelConfig(MoeConfig(), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab_size, 320);
  EXPECT_EQ(config->full.name, "full");
  EXPECT_EQ(config->full.hidden_size, 64);
  EXPECT_EQ(config->conv_channels(6), 6 * 16 + 2 * 2 * 24);
  EXPECT_EQ(config->kv_width(), 40);
  EXPECT_FLOAT_EQ(config->norm_eps, 1e-5f);
  EXPECT_FLOAT_EQ(config->routed_scaling_factor, 2.5f);
  EXPECT_EQ(config->time_step_limit_min, 0);
  EXPECT_TRUE(std::isinf(config->time_step_limit_max));
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
  ASSERT_EQ(config->num_layers(), 8);
  EXPECT_EQ(config->full.layers[0], (LayerShape{.kind = LayerKind::kMamba, .mamba_heads = 6}));
  EXPECT_EQ(
      config->full.layers[1],
      (LayerShape{
          .kind = LayerKind::kMoe, .routed_experts = 8, .expert_width = 48, .shared_expert_width = 72}));
  EXPECT_EQ(config->full.layers[3], (LayerShape{.kind = LayerKind::kAttention, .query_heads = 4}));
  EXPECT_EQ(config->full.layers[5], (LayerShape{.kind = LayerKind::kMlp, .mlp_width = 80}));
}

TEST(ModelConfigTest, ReadsThreeSpellingsOfTheLayerList) {
  const auto expected = ParseModelConfig(MoeConfig(), "config.json");
  const std::vector<std::pair<const char*, std::vector<std::string>>> spellings = {
      {"layers_block_type", {"mamba", "moe", "mamba", "attention", "moe", "mlp", "mamba", "moe"}},
      {"layer_types",
       {"linear_attention", "moe", "linear_attention", "full_attention", "moe", "mlp", "linear_attention",
        "moe"}}};
  for (const auto& [key, words] : spellings) {
    const auto config = Parse([&](Json& json) {
      json.erase("hybrid_override_pattern");
      json[key] = words;
    });
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->full.layers, expected->full.layers) << key;
  }
}

TEST(ModelConfigTest, ReadsTheAliasesOfNativeTransformers) {
  const auto config = Parse([](Json& json) {
    Rename(json, "n_groups", "mamba_n_groups");
    Rename(json, "conv_kernel", "mamba_d_conv");
    Rename(json, "use_conv_bias", "mamba_conv_bias");
    Rename(json, "head_dim", "attention_head_dim");
    Rename(json, "torch_dtype", "dtype");
    json.erase("layer_norm_epsilon");
    json["norm_eps"] = 1e-6;
    json["mamba_dt_limit"] = {0.5, 2};
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->n_groups, 2);
  EXPECT_EQ(config->conv_kernel, 4);
  EXPECT_EQ(config->head_dim, 20);
  EXPECT_FLOAT_EQ(config->norm_eps, 1e-6f);
  EXPECT_FLOAT_EQ(config->time_step_limit_min, 0.5f);
  EXPECT_FLOAT_EQ(config->time_step_limit_max, 2);
}

TEST(ModelConfigTest, ErrorsNameTheSpellingThatIsThere) {
  EXPECT_EQ(ErrorOf([](Json& json) {
              json.erase("n_groups");
              json["mamba_n_groups"] = 0;
            }),
            "config.json: key 'mamba_n_groups': expected a whole number from 1 to 16384, found 0");
}

TEST(ModelConfigTest, ReadsWidthsPerLayer) {
  const auto config = Parse([](Json& json) {
    json["moe_intermediate_size"] = {nullptr, 48, nullptr, nullptr, 24, nullptr, nullptr, 36};
    json["intermediate_size"] = {72};  // one for each '-' layer
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->full.layers[4].expert_width, 24);
  EXPECT_EQ(config->full.layers[7].expert_width, 36);
  EXPECT_EQ(config->full.layers[5].mlp_width, 72);
}

TEST(ModelConfigTest, RefusesWidthsPerLayerThatDoNotFit) {
  EXPECT_EQ(ErrorWith("moe_intermediate_size", {1, 2}),
            "config.json: key 'moe_intermediate_size': expected a number or a list of 8 values, one a layer, "
            "found [1,2]");
  EXPECT_EQ(
      ErrorWith("moe_intermediate_size", {7, 48, nullptr, nullptr, 24, nullptr, nullptr, 36}),
      "config.json: key 'moe_intermediate_size': expected null for layer 0, which is 'M' and has no such "
      "axis, found 7");
  EXPECT_EQ(
      ErrorWith("moe_intermediate_size", {nullptr, nullptr, nullptr, nullptr, 24, nullptr, nullptr, 36}),
      "config.json: key 'moe_intermediate_size': expected a whole number from 1 to 1048576 for layer 1, "
      "found null");
}

TEST(ModelConfigTest, SharedExpertsCountTogether) {
  const auto config = Parse([](Json& json) { json["n_shared_experts"] = 2; });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->full.layers[1].shared_expert_width, 144);
  const auto none = Parse([](Json& json) { json["n_shared_experts"] = 0; });
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->full.layers[1].shared_expert_width, 0);
}

TEST(ModelConfigTest, ReadsEveryFormOfInfinity) {
  for (const char* most : {"Infinity", "\"Infinity\"", "\"inf\"", "{\"__float__\": \"Infinity\"}", "1e300"}) {
    CheckpointEditor editor(GoldenFolder("moe"));
    editor.EditBytes("config.json", [&](std::string& config) {
      config.replace(config.find('{'), 1, StrCat("{\"time_step_limit\": [0.0, ", most, "],"));
    });
    const auto json = ReadPythonJson(editor.PathOf("config.json"));
    ASSERT_TRUE(json.ok()) << json.status();
    const auto config = ParseModelConfig(*json, "config.json");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(std::isinf(config->time_step_limit_max)) << most;
  }
}

TEST(ModelConfigTest, RefusesABrokenTimeStepLimit) {
  for (const Json& limit :
       {Json({1}), Json({2, 1}), Json({-1, 1}), Json({"inf", "inf"}), Json(1), Json({0, "x"})}) {
    EXPECT_THAT(ErrorWith("time_step_limit", limit),
                HasSubstr("key 'time_step_limit': expected [least, most] with 0 ≤ least ≤ most, found"));
  }
}

TEST(ModelConfigTest, RefusesNumbersThatAreNone) {
  for (const Json& value :
       {Json(-3), Json(0), Json(64.0), Json(true), Json("64"), Json(1LL << 40), Json({64})}) {
    EXPECT_EQ(
        ErrorWith("hidden_size", value),
        "config.json: key 'hidden_size': expected a whole number from 1 to 1048576, found " + value.dump());
  }
  EXPECT_EQ(ErrorWith("layer_norm_epsilon", 0),
            "config.json: key 'layer_norm_epsilon': expected a number from 1e-30 to 1, found 0");
  EXPECT_EQ(ErrorWith("routed_scaling_factor", "2.5"),
            "config.json: key 'routed_scaling_factor': expected a number from 0 to 1e+06, found \"2.5\"");
  EXPECT_EQ(ErrorWith("norm_topk_prob", 1),
            "config.json: key 'norm_topk_prob': expected true or false, found 1");
}

TEST(ModelConfigTest, RefusesMissingKeys) {
  for (const char* key :
       {"vocab_size", "hidden_size", "mamba_num_heads", "ssm_state_size", "num_key_value_heads",
        "n_routed_experts", "n_shared_experts", "intermediate_size", "model_type"}) {
    const std::string error = ErrorOf([&](Json& json) { json.erase(key); });
    EXPECT_THAT(error, HasSubstr(std::string("config.json: key '") + key + "': expected"));
    EXPECT_THAT(error, HasSubstr("found nothing"));
  }
  EXPECT_EQ(ErrorOf([](Json& json) { json.erase("hybrid_override_pattern"); }),
            "config.json: key 'hybrid_override_pattern': expected the kinds of all layers, found nothing");
}

TEST(ModelConfigTest, RefusesBrokenLayerLists) {
  EXPECT_EQ(ErrorWith("hybrid_override_pattern", "MEMXE-ME"),
            "config.json: key 'hybrid_override_pattern': expected a letter of M, E, *, - for layer 3, found "
            "\"X\"");
  EXPECT_EQ(ErrorWith("hybrid_override_pattern", "MEM*"),
            "config.json: key 'num_hidden_layers': expected 4, the number of layers listed, found 8");
  EXPECT_EQ(ErrorOf([](Json& json) {
              json.erase("num_hidden_layers");
              json["hybrid_override_pattern"] = "";
            }),
            "config.json: key 'num_hidden_layers': expected 1 to 4096, found 0");
  EXPECT_EQ(ErrorOf([](Json& json) {
              json.erase("num_hidden_layers");
              json["hybrid_override_pattern"] = std::string(5000, 'M');
            }),
            "config.json: key 'num_hidden_layers': expected 1 to 4096, found 5000");
  EXPECT_EQ(ErrorWith("layers_block_type", {"mamba"}),
            "config.json: key 'layers_block_type': expected the layers of the other spelling, found "
            "[\"mamba\"]");
  EXPECT_EQ(
      ErrorWith("layer_types", {"moe", "conv"}),
      "config.json: key 'layer_types': expected mamba, attention, mlp or moe for layer 1, found \"conv\"");
  EXPECT_EQ(ErrorWith("layer_types", "moe"),
            "config.json: key 'layer_types': expected a list of layer types, found \"moe\"");
}

TEST(ModelConfigTest, RefusesNumbersThatDoNotDivide) {
  EXPECT_EQ(
      ErrorWith("mamba_num_heads", 7),
      "config.json: submodel 'full', layer 0: expected mamba_num_heads to be a multiple of n_groups, 2, "
      "found 7");
  EXPECT_EQ(ErrorWith("num_attention_heads", 5),
            "config.json: submodel 'full', layer 3: expected num_attention_heads to be a multiple of "
            "num_key_value_heads, 2, found 5");
  EXPECT_EQ(
      ErrorWith("n_group", 3),
      "config.json: submodel 'full', layer 1: expected n_routed_experts to be a multiple of n_group, 3, "
      "found 8");
  EXPECT_EQ(ErrorWith("n_group", 8),
            "config.json: submodel 'full', layer 1: expected n_routed_experts of at least 2 in each of 8 "
            "groups, found 8");
  EXPECT_EQ(ErrorWith("topk_group", 2),
            "config.json: key 'topk_group': expected a whole number from 1 to 1, found 2");
  EXPECT_EQ(ErrorWith("num_experts_per_tok", 9),
            "config.json: submodel 'full', layer 1: expected at least num_experts_per_tok, 9, experts within "
            "topk_group groups, found 8");
  EXPECT_EQ(ErrorWith("conv_kernel", 1),
            "config.json: key 'conv_kernel': expected a whole number from 2 to 64, found 1");
}

TEST(ModelConfigTest, RefusesMoreExpertsThanAnyModelHas) {
  EXPECT_EQ(
      ErrorOf([](Json& json) {
        json["num_hidden_layers"] = 5;
        json["hybrid_override_pattern"] = "EEEEE";
        json["n_routed_experts"] = 65536;
      }),
      "config.json: key 'n_routed_experts': expected at most 262144 experts in all layers, found 327680");
}

TEST(ModelConfigTest, RefusesFeaturesItDoesNotRun) {
  const std::vector<std::pair<const char*, Json>> features = {
      {"use_bias", true},
      {"mamba_proj_bias", true},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"sliding_window", 4096},
      {"mamba_hidden_act", "gelu"},
      {"mlp_hidden_act", "silu"},
      {"block_configs", Json::array()},
      {"architectures", {"NemotronHPuzzleForCausalLM"}}};
  for (const auto& [key, value] : features) {
    const auto config = Parse([&, k = key, v = value](Json& json) { json[k] = v; });
    EXPECT_EQ(config.status().code(), absl::StatusCode::kUnimplemented) << key;
    EXPECT_THAT(std::string(config.status().message()),
                HasSubstr(std::string("config.json: key '") + key + "'"));
  }
  EXPECT_EQ(ErrorWith("attention_bias", true),
            "config.json: key 'attention_bias': expected false, found true");
}

TEST(ModelConfigTest, RefusesOtherFamilies) {
  EXPECT_EQ(ErrorWith("model_type", "llama"),
            "config.json: key 'model_type': expected 'nemotron_h', found \"llama\"");
  EXPECT_EQ(std::string(ParseModelConfig(Json::array(), "config.json").status().message()),
            "config.json: expected an object, found []");
}

TEST(ModelConfigTest, RefusesTokenIdsOutsideTheVocabulary) {
  EXPECT_EQ(ErrorWith("bos_token_id", 320),
            "config.json: key 'bos_token_id': expected a token id from 0 to 319, found 320");
  EXPECT_EQ(ErrorWith("eos_token_id", {2, -1}),
            "config.json: key 'eos_token_id': expected a token id from 0 to 319, or a list of them, found "
            "[2,-1]");
}

TEST(GenerationConfigTest, OverridesIdsAndSetsSampling) {
  auto config = ParseModelConfig(MoeConfig(), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  const Json generation = {
      {"eos_token_id", {2, 11}}, {"do_sample", true}, {"temperature", 0.6}, {"top_p", 0.95}, {"top_k", 50}};
  ASSERT_TRUE(ApplyGenerationConfig(generation, "generation_config.json", *config).ok());
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2, 11));
  EXPECT_EQ(config->bos_token_id, 1);
  EXPECT_TRUE(config->do_sample);
  EXPECT_FLOAT_EQ(*config->temperature, 0.6f);
  EXPECT_FLOAT_EQ(*config->top_p, 0.95f);
  EXPECT_EQ(config->top_k, 50);
}

TEST(GenerationConfigTest, NamesWhatIsOutOfRange) {
  auto config = ParseModelConfig(MoeConfig(), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto error = [&](const Json& json) {
    return std::string(ApplyGenerationConfig(json, "generation_config.json", *config).message());
  };
  EXPECT_EQ(error({{"top_p", 1.5}}),
            "generation_config.json: key 'top_p': expected a number from 0 to 1, found 1.5");
  EXPECT_EQ(error({{"top_p", 0}}),
            "generation_config.json: key 'top_p': expected a number above 0, at most 1, found 0");
  EXPECT_EQ(error({{"temperature", -1}}),
            "generation_config.json: key 'temperature': expected a number from 0 to 100, found -1");
  EXPECT_EQ(error({{"do_sample", "yes"}}),
            "generation_config.json: key 'do_sample': expected true or false, found \"yes\"");
}

}  // namespace
}  // namespace nestor
