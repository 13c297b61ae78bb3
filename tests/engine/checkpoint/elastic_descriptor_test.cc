#include "engine/checkpoint/elastic_descriptor.h"

#include <functional>
#include <utility>

#include "engine/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig ConfigOf(const std::string& folder) {
  return *ParseModelConfig(Json::parse(*ReadFile(folder + "/config.json")), "config.json");
}

Json ElasticOf(const std::string& folder) { return Json::parse(*ReadFile(folder + "/elastic.json")); }

// Edits the descriptor of `uneven` (layers MEM*E-ME), whose first submodel is the full model.
absl::StatusOr<ElasticDescriptor> Parse(const std::function<void(Json&)>& edit) {
  Json json = ElasticOf(GoldenFolder("uneven"));
  edit(json);
  return ParseElasticDescriptor(json, "elastic.json", ConfigOf(GoldenFolder("uneven")));
}

std::string ErrorOf(const std::function<void(Json&)>& edit) {
  const auto descriptor = Parse(edit);
  return descriptor.ok() ? "" : std::string(descriptor.status().message());
}

// The error of a submodel with one more key.
std::string ErrorWith(const char* key, const Json& value) {
  return ErrorOf([&](Json& json) { json["submodels"][0][key] = value; });
}

TEST(ElasticDescriptorTest, ResolvesEveryAxis) {
  const auto descriptor = Parse([](Json&) {});
  ASSERT_TRUE(descriptor.ok()) << descriptor.status();
  ASSERT_EQ(descriptor->submodels.size(), 3u);
  const SubmodelShape& uneven = descriptor->submodels[1];
  EXPECT_EQ(uneven.name, "uneven");
  EXPECT_EQ(uneven.hidden_size, 56);
  EXPECT_EQ(uneven.layers[2], (LayerShape{.kind = LayerKind::kMamba, .mamba_heads = 4}));
  EXPECT_EQ(uneven.layers[3], (LayerShape{.kind = LayerKind::kAttention, .query_heads = 2}));
  EXPECT_EQ(
      uneven.layers[4],
      (LayerShape{
          .kind = LayerKind::kMoe, .routed_experts = 6, .expert_width = 24, .shared_expert_width = 40}));
  EXPECT_EQ(uneven.layers[5], (LayerShape{.kind = LayerKind::kMlp, .mlp_width = 64}));
}

TEST(ElasticDescriptorTest, SkipsLayersThatAreNotListed) {
  const auto descriptor = Parse([](Json&) {});
  ASSERT_TRUE(descriptor.ok()) << descriptor.status();
  std::vector<int> active;
  for (int i = 0; i < 8; ++i) {
    if (descriptor->submodels[2].layers[i].active) active.push_back(i);
  }
  EXPECT_THAT(active, ElementsAre(0, 1, 3, 4, 6, 7));
}

TEST(ElasticDescriptorTest, ReadsTheMeasuredQualityOfAbacus) {
  const auto descriptor =
      ParseElasticDescriptor(ElasticOf(AbacusFolder()), "elastic.json", ConfigOf(AbacusFolder()));
  ASSERT_TRUE(descriptor.ok()) << descriptor.status();
  EXPECT_EQ(descriptor->default_handoff, Handoff::kRecompute);
  EXPECT_TRUE(descriptor->transplant_allowed);
  EXPECT_EQ(descriptor->thinking->open, "<think>\n");
  EXPECT_EQ(descriptor->quality_metric, "accuracy");
  EXPECT_EQ(descriptor->quality.size(), 93u);
  const QualityRow& first = descriptor->quality.front();
  EXPECT_EQ(first.thinking_submodel, "2.5m");
  EXPECT_EQ(first.max_thinking_tokens, 0);
  EXPECT_DOUBLE_EQ(first.accuracy, 0.4167);
  EXPECT_DOUBLE_EQ(first.accuracy_by_task.at("sorting"), 0.8984);
  const QualityRow& last = descriptor->quality.back();
  EXPECT_EQ(last.thinking_submodel, std::nullopt);
  EXPECT_EQ(last.answer_submodel, "0.5m");
  EXPECT_EQ(last.max_thinking_tokens, std::nullopt);
}

TEST(ElasticDescriptorTest, RefusesUnknownKeysEverywhere) {
  EXPECT_EQ(ErrorOf([](Json& json) { json["submodel"] = 1; }),
            "elastic.json: key 'submodel': expected no such key, found 1");
  EXPECT_EQ(ErrorWith("hiden_size", 32),
            "elastic.json: key 'submodels[0].hiden_size': expected no such key, found 32");
  EXPECT_EQ(ErrorOf([](Json& json) { json["handoff"]["mode"] = "x"; }),
            "elastic.json: key 'handoff.mode': expected no such key, found \"x\"");
}

TEST(ElasticDescriptorTest, RefusesAnotherFormat) {
  EXPECT_EQ(ErrorOf([](Json& json) { json["format"] = "nestor.elastic/2"; }),
            "elastic.json: key 'format': expected 'nestor.elastic/1', found \"nestor.elastic/2\"");
}

TEST(ElasticDescriptorTest, RefusesBrokenNames) {
  for (const Json& name : {Json(""), Json("a b"), Json("größe"), Json(std::string(65, 'a'))}) {
    EXPECT_THAT(
        ErrorWith("name", name),
        HasSubstr("key 'submodels[0].name': expected 1 to 64 letters, digits, '.', '_' or '-', found"));
  }
  EXPECT_EQ(ErrorWith("name", 7), "elastic.json: key 'submodels[0].name': expected a string, found 7");
  EXPECT_EQ(ErrorOf([](Json& json) { json["submodels"][1]["name"] = "large"; }),
            "elastic.json: key 'submodels[1].name': expected a name of its own, found \"large\"");
}

TEST(ElasticDescriptorTest, RefusesAnEmptyOrEndlessList) {
  EXPECT_EQ(ErrorOf([](Json& json) { json["submodels"] = Json::array(); }),
            "elastic.json: key 'submodels': expected a list of 1 to 64 submodels, found []");
  EXPECT_THAT(ErrorOf([](Json& json) { json["submodels"] = Json::array_t(65, Json::object()); }),
              HasSubstr("expected a list of 1 to 64 submodels"));
  EXPECT_EQ(ErrorOf([](Json& json) { json["submodels"] = {7}; }),
            "elastic.json: key 'submodels[0]': expected an object, found 7");
}

TEST(ElasticDescriptorTest, RefusesSlicesLargerThanTheParent) {
  EXPECT_EQ(ErrorWith("hidden_size", 65),
            "elastic.json: key 'submodels[0].hidden_size': expected a whole number from 1 to 64, found 65");
  EXPECT_EQ(
      ErrorWith("moe_intermediate_size", 49),
      "elastic.json: key 'submodels[0].moe_intermediate_size': expected a whole number from 1 to 48 for "
      "layer 1, found 49");
  EXPECT_EQ(ErrorWith("hidden_size", {64}),
            "elastic.json: key 'submodels[0].hidden_size': expected a whole number from 1 to 64, found [64]");
}

TEST(ElasticDescriptorTest, RefusesHeadsThatDoNotDivide) {
  EXPECT_EQ(ErrorWith("mamba_num_heads", 3),
            "elastic.json: submodel 'large', layer 0: expected mamba_num_heads to be a multiple of n_groups, "
            "2, found 3");
  EXPECT_EQ(ErrorWith("num_attention_heads", 3),
            "elastic.json: submodel 'large', layer 3: expected num_attention_heads to be a multiple of "
            "num_key_value_heads, 2, found 3");
}

TEST(ElasticDescriptorTest, RefusesFewerExpertsThanATokenNeeds) {
  EXPECT_EQ(
      ErrorWith("n_routed_experts", 2),
      "elastic.json: submodel 'large', layer 1: expected at least num_experts_per_tok, 3, experts within "
      "topk_group groups, found 2");
}

TEST(ElasticDescriptorTest, ExpertsOfAGroupedRouterAreCutByWholeGroups) {
  const ModelConfig config = ConfigOf(GoldenFolder("grouped-router"));
  Json json = ElasticOf(GoldenFolder("grouped-router"));
  json["submodels"][1]["n_routed_experts"] = 12;
  EXPECT_TRUE(ParseElasticDescriptor(json, "elastic.json", config).ok());
  json["submodels"][1]["n_routed_experts"] = 10;
  EXPECT_THAT(std::string(ParseElasticDescriptor(json, "elastic.json", config).status().message()),
              HasSubstr("expected n_routed_experts to be a multiple of n_group, 4, found 10"));
}

TEST(ElasticDescriptorTest, RefusesListsThatDoNotFit) {
  EXPECT_EQ(
      ErrorWith("mamba_num_heads", {6, nullptr}),
      "elastic.json: key 'submodels[0].mamba_num_heads': expected a number or a list of 8 values, one a "
      "layer, found [6,null]");
  EXPECT_EQ(
      ErrorWith("mamba_num_heads", {6, 6, 6, nullptr, nullptr, nullptr, 6, nullptr}),
      "elastic.json: key 'submodels[0].mamba_num_heads': expected null for layer 1, which is 'E' and has "
      "no such axis, found 6");
}

TEST(ElasticDescriptorTest, RefusesAnAxisThatNoLayerHas) {
  Json json = {{"format", "nestor.elastic/1"}, {"submodels", {{{"name", "a"}, {"n_routed_experts", 1}}}}};
  EXPECT_EQ(
      std::string(
          ParseElasticDescriptor(json, "elastic.json", ConfigOf(GoldenFolder("dense"))).status().message()),
      "elastic.json: key 'submodels[0].n_routed_experts': expected a key of an axis that some layer has, "
      "found 1");
}

TEST(ElasticDescriptorTest, RefusesBrokenLayerIndices) {
  for (const Json& layers : {Json::array(), Json({1, 0}), Json({0, 0}), Json({0, 8}), Json({-1}), Json(3)}) {
    EXPECT_EQ(
        ErrorWith("layers", layers),
        "elastic.json: key 'submodels[0].layers': expected ascending layer indices from 0 to 7, found " +
            layers.dump());
  }
}

TEST(ElasticDescriptorTest, RefusesTransplantBetweenDifferentStates) {
  EXPECT_EQ(
      ErrorOf([](Json& json) { json["handoff"]["transplant"] = true; }),
      "elastic.json: key 'handoff.transplant': expected false, as large and uneven differ in layer 2: 6 "
      "Mamba heads against 4, found true");
  EXPECT_EQ(ErrorOf([](Json& json) { json["handoff"]["default"] = "transplant"; }),
            "elastic.json: key 'handoff.default': expected 'recompute', as transplant is not allowed, found "
            "\"transplant\"");
  EXPECT_EQ(ErrorOf([](Json& json) { json["handoff"]["default"] = "copy"; }),
            "elastic.json: key 'handoff.default': expected 'recompute' or 'transplant', found \"copy\"");
}

TEST(ElasticDescriptorTest, TransplantIsAllowedWhereTheShapesAre) {
  const auto uneven = Parse([](Json& json) { json.erase("handoff"); });
  ASSERT_TRUE(uneven.ok()) << uneven.status();
  EXPECT_FALSE(uneven->transplant_allowed);
  Json json = ElasticOf(GoldenFolder("moe"));
  json.erase("handoff");
  const auto moe = ParseElasticDescriptor(json, "elastic.json", ConfigOf(GoldenFolder("moe")));
  ASSERT_TRUE(moe.ok()) << moe.status();
  EXPECT_TRUE(moe->transplant_allowed);
}

TEST(ElasticDescriptorTest, TransplantObstacleNamesTheFirstDifference) {
  const auto descriptor = Parse([](Json&) {});
  ASSERT_TRUE(descriptor.ok()) << descriptor.status();
  const std::vector<SubmodelShape>& submodels = descriptor->submodels;
  EXPECT_EQ(TransplantObstacle(submodels[0], submodels[0]), std::nullopt);
  EXPECT_EQ(TransplantObstacle(submodels[0], submodels[1]), "layer 2: 6 Mamba heads against 4");
  EXPECT_EQ(TransplantObstacle(submodels[0], submodels[2]), "layer 2: active against skipped");
  EXPECT_EQ(TransplantObstacle(submodels[2], submodels[0]), "layer 2: skipped against active");
}

TEST(ElasticDescriptorTest, RefusesHalfOfTheThinkingMarkers) {
  EXPECT_EQ(ErrorOf([](Json& json) {
              json["thinking"] = {{"open", "<think>\n"}};
            }),
            "elastic.json: key 'thinking.close': expected the text that closes thinking, found nothing");
}

TEST(ElasticDescriptorTest, RefusesBrokenQualityRows) {
  const Json good = {
      {"thinking", "large"}, {"answer", "uneven"}, {"max_thinking_tokens", nullptr}, {"accuracy", 0.5}};
  const auto error = [&](const char* key, const Json& value) {
    return ErrorOf([&](Json& json) {
      Json row = good;
      row[key] = value;
      json["quality"] = {{"metric", "accuracy"}, {"rows", {row}}};
    });
  };
  EXPECT_EQ(error("accuracy", 0.5), "");
  EXPECT_EQ(error("thinking", "tiny"),
            "elastic.json: key 'quality.rows[0].thinking': expected the name of a submodel, found \"tiny\"");
  EXPECT_EQ(error("accuracy", 1.5),
            "elastic.json: key 'quality.rows[0].accuracy': expected a number from 0 to 1, found 1.5");
  EXPECT_EQ(error("accuracy", nullptr),
            "elastic.json: key 'quality.rows[0].accuracy': expected a number from 0 to 1, found nothing");
  EXPECT_EQ(error("by_task", {{"sums", 2}}),
            "elastic.json: key 'quality.rows[0].by_task.sums': expected a number from 0 to 1, found 2");
  EXPECT_EQ(error("enable_thinking", false),
            "elastic.json: key 'quality.rows[0].thinking': expected null, as enable_thinking is false, found "
            "\"large\"");
  EXPECT_EQ(error("note", "x"),
            "elastic.json: key 'quality.rows[0].note': expected no such key, found \"x\"");
}

}  // namespace
}  // namespace nestor
