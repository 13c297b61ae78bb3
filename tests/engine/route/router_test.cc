#include "engine/route/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error_detail.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;

// Three sizes; weights 4 bytes a parameter, 100 bytes of state, 10 bytes of KV a token.
ModelFacts ThreeSizes() {
  ModelFacts model;
  model.submodels = {{"large", 1000, 600, 4000, 100, 10},
                     {"medium", 500, 400, 2000, 100, 10},
                     {"small", 200, 150, 800, 100, 10}};
  model.transplant_obstacles.assign(3, std::vector<std::string>(3));
  model.transplant_obstacles[0][2] = model.transplant_obstacles[2][0] = "layer 2: 6 Mamba heads against 4";
  model.supports_thinking = true;
  model.max_context_tokens = 1000;
  model.default_max_output_tokens = 100;
  model.close_tokens = 2;
  return model;
}

PlanRequest Request(bool think = true) {
  PlanRequest request;
  request.think = think;
  request.prompt_tokens = 10;
  return request;
}

TEST(Router, WithoutBudgetTheLargestThinksAndAnswers) {
  const auto plan = Route(Request(), ThreeSizes());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->thinking_submodel, 0);
  EXPECT_EQ(plan->answer_submodel, 0);
  EXPECT_EQ(plan->max_output_tokens, 100);
  EXPECT_EQ(plan->handoff, Handoff::kRecompute);
  EXPECT_THAT(plan->reason, HasSubstr("large answers"));
}

TEST(Router, LimitsForThinkingThatDoesNotTakePlaceAreRefused) {
  const auto field = [](const PlanRequest& request) {
    const absl::Status status = Route(request, ThreeSizes()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return FieldOf(status).value_or("");
  };
  PlanRequest request = Request(/*think=*/false);
  request.thinking.submodel = "no such";
  EXPECT_EQ(field(request), "thinking.submodel");
  request = Request(false);
  request.max_thinking_tokens = 0;
  EXPECT_EQ(field(request), "thinking.max_thinking_tokens");
  request = Request(false);
  request.thinking.budget.max_memory_bytes = 1;
  EXPECT_EQ(field(request), "thinking.budget");
}

TEST(Router, TotalParametersPickTheLargestThatFits) {
  PlanRequest request = Request();
  request.budget.max_total_parameters = 999;
  EXPECT_EQ(Route(request, ThreeSizes())->answer_submodel, 1);
  request.budget.max_total_parameters = 1000;
  EXPECT_EQ(Route(request, ThreeSizes())->answer_submodel, 0);
  request.budget.max_total_parameters = 200;
  EXPECT_EQ(Route(request, ThreeSizes())->answer_submodel, 2);
}

TEST(Router, ActiveParametersPickTheLargestThatFits) {
  PlanRequest request = Request();
  request.budget.max_active_parameters = 400;
  EXPECT_EQ(Route(request, ThreeSizes())->answer_submodel, 1);
}

TEST(Router, MemoryCountsWeightsStateAndEveryTokenTheLimitsAllow) {
  PlanRequest request = Request();
  request.max_output_tokens = 50;
  // large: 4000 + 100 + 10 · (10 prompt + 50 output + 2 close) = 4720
  request.budget.max_memory_bytes = 4720;
  const auto fits = Route(request, ThreeSizes());
  EXPECT_EQ(fits->answer_submodel, 0);
  EXPECT_EQ(fits->memory_bytes, 4720);
  request.budget.max_memory_bytes = 4719;
  EXPECT_EQ(Route(request, ThreeSizes())->answer_submodel, 1);
}

TEST(Router, WithoutThinkingNothingIsForcedSoMemoryIsSmaller) {
  PlanRequest request = Request(/*think=*/false);
  request.max_output_tokens = 50;
  EXPECT_EQ(Route(request, ThreeSizes())->memory_bytes, 4700);
}

TEST(Router, PhasesHaveBudgetsOfTheirOwnAndAllHaveToHold) {
  PlanRequest request = Request();
  request.thinking.budget.max_total_parameters = 300;
  auto plan = Route(request, ThreeSizes());
  EXPECT_EQ(plan->thinking_submodel, 2);
  EXPECT_EQ(plan->answer_submodel, 0);
  EXPECT_THAT(plan->reason,
              HasSubstr("small thinks: the largest that fits (medium needs 500 total parameters of 300)"));
  request.budget.max_total_parameters = 600;
  plan = Route(request, ThreeSizes());
  EXPECT_EQ(plan->thinking_submodel, 2);
  EXPECT_EQ(plan->answer_submodel, 1);
}

TEST(Router, NamedSubmodelsReplaceTheChoice) {
  PlanRequest request = Request();
  request.thinking.submodel = "small";
  request.answer.submodel = "medium";
  const auto plan = Route(request, ThreeSizes());
  EXPECT_EQ(plan->thinking_submodel, 2);
  EXPECT_EQ(plan->answer_submodel, 1);
  EXPECT_EQ(plan->reason, "small thinks: named by the request; medium answers: named by the request");
}

TEST(Router, ANamedSubmodelStillHasToFit) {
  PlanRequest request = Request();
  request.answer.submodel = "large";
  request.budget.max_total_parameters = 500;
  const absl::Status status = Route(request, ThreeSizes()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "BUDGET_TOO_SMALL");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("large, named by the request, needs 1000 total parameters of 500"));
}

TEST(Router, RefusesWhatFitsNothingAndSaysWhatTheSmallestNeeds) {
  PlanRequest request = Request();
  request.budget.max_total_parameters = 199;
  const absl::Status status = Route(request, ThreeSizes()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "BUDGET_TOO_SMALL");
  EXPECT_EQ(status.message(),
            "answer: no submodel fits the budget: small, the smallest, needs 200 total parameters of 199");
}

TEST(Router, BestEffortRunsTheSmallestAndSaysSo) {
  PlanRequest request = Request();
  request.budget.max_total_parameters = 199;
  request.best_effort = true;
  const auto plan = Route(request, ThreeSizes());
  EXPECT_EQ(plan->answer_submodel, 2);
  EXPECT_TRUE(plan->budget_missed);
  EXPECT_THAT(plan->reason, HasSubstr("best effort"));
}

TEST(Router, AnUnknownSubmodelNamesTheFieldAndTheKnownOnes) {
  PlanRequest request = Request();
  request.thinking.submodel = "huge";
  const absl::Status status = Route(request, ThreeSizes()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "thinking.submodel");
  EXPECT_EQ(status.message(), "thinking.submodel: expected one of large, medium, small, found 'huge'");
}

TEST(Router, TransplantNeedsEqualStateShapes) {
  PlanRequest request = Request();
  request.handoff = Handoff::kTransplant;
  request.thinking.submodel = "small";
  request.answer.submodel = "large";
  const absl::Status status = Route(request, ThreeSizes()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "TRANSPLANT_IMPOSSIBLE");
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer 2: 6 Mamba heads against 4"));
  request.answer.submodel = "medium";
  EXPECT_EQ(Route(request, ThreeSizes())->handoff, Handoff::kTransplant);
}

TEST(Router, TheModelsDefaultHandoffHoldsWhereTheRequestNamesNone) {
  ModelFacts model = ThreeSizes();
  model.default_handoff = Handoff::kTransplant;
  PlanRequest request = Request();
  request.thinking.submodel = "small";
  request.answer.submodel = "medium";
  EXPECT_EQ(Route(request, model)->handoff, Handoff::kTransplant);
  request.answer.submodel = "large";  // an obstacle: the default gives way
  EXPECT_EQ(Route(request, model)->handoff, Handoff::kRecompute);
}

TEST(Router, OutputLimitsStayWithinTheContext) {
  PlanRequest request = Request();
  request.prompt_tokens = 950;
  EXPECT_EQ(Route(request, ThreeSizes())->max_output_tokens, 48);  // the default gives way: 1000 - 950 - 2
  request.max_output_tokens = 49;
  EXPECT_EQ(FieldOf(Route(request, ThreeSizes()).status()), "max_output_tokens");
  request.max_output_tokens = 0;
  EXPECT_EQ(FieldOf(Route(request, ThreeSizes()).status()), "max_output_tokens");
  request.max_output_tokens = std::nullopt;
  request.prompt_tokens = 998;
  EXPECT_EQ(FieldOf(Route(request, ThreeSizes()).status()), "prompt");
}

TEST(Router, ThinkingNeedsAModelThatThinks) {
  ModelFacts model = ThreeSizes();
  model.supports_thinking = false;
  EXPECT_EQ(FieldOf(Route(Request(), model).status()), "thinking.enabled");
  PlanRequest request = Request();
  request.max_thinking_tokens = -1;
  EXPECT_EQ(FieldOf(Route(request, ThreeSizes()).status()), "thinking.max_thinking_tokens");
}

}  // namespace
}  // namespace nestor
