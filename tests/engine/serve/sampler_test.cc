#include "engine/serve/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace nestor {
namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};

SamplingParameters Hot(uint64_t seed = 1) {
  SamplingParameters parameters;
  parameters.temperature = 1;
  parameters.seed = seed;
  return parameters;
}

// How often each token is drawn over many positions.
std::map<int32_t, double> Frequencies(const SamplingParameters& parameters,
                                      const std::vector<float>& logits) {
  constexpr int kDraws = 20000;
  Sampler sampler(parameters, -1, {});
  std::map<int32_t, double> frequencies;
  for (int position = 0; position < kDraws; ++position) {
    frequencies[sampler.Sample(logits, position)->token] += 1.0 / kDraws;
  }
  return frequencies;
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdOfEqualOnes) {
  EXPECT_EQ(Sampler({}, -1, {}).Sample(kLogits, 0)->token, 1);
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  const auto frequencies = Frequencies(Hot(), logits);
  EXPECT_NEAR(frequencies.at(0), 1.0 / 8, 0.01);
  EXPECT_NEAR(frequencies.at(1), 2.0 / 8, 0.01);
  EXPECT_NEAR(frequencies.at(2), 5.0 / 8, 0.01);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<float> logits = {0, std::log(2.0f)};
  SamplingParameters parameters = Hot();
  parameters.temperature = 0.5f;  // 1 : 4
  EXPECT_NEAR(Frequencies(parameters, logits).at(1), 4.0 / 5, 0.01);
  parameters.temperature = 2;  // 1 : √2
  EXPECT_NEAR(Frequencies(parameters, logits).at(1), std::sqrt(2.0) / (1 + std::sqrt(2.0)), 0.01);
}

// Logits divided by so little would overflow.
TEST(Sampler, TheSmallestTemperaturesAreGreedy) {
  SamplingParameters parameters = Hot();
  for (const float temperature : {1e-6f, 1e-30f, 1e-38f, 1e-45f}) {
    parameters.temperature = temperature;
    const auto frequencies = Frequencies(parameters, {100.0f, 300.0f, -2000.0f, 299.0f});
    EXPECT_EQ(frequencies.size(), 1u) << temperature;
    EXPECT_EQ(frequencies.count(1), 1u) << temperature;
  }
  parameters.top_p = 0.5f;
  parameters.min_p = 0.5f;
  EXPECT_EQ(Frequencies(parameters, {100.0f, 300.0f, -2000.0f, 299.0f}).count(1), 1u);
}

TEST(Sampler, TopKKeepsTheKLikeliest) {
  SamplingParameters parameters = Hot();
  parameters.top_k = 2;
  const auto frequencies = Frequencies(parameters, kLogits);
  EXPECT_EQ(frequencies.size(), 2u);
  EXPECT_NEAR(frequencies.at(1), 0.5, 0.02);
  EXPECT_NEAR(frequencies.at(3), 0.5, 0.02);
}

TEST(Sampler, TopPKeepsTheFewestThatReachP) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  SamplingParameters parameters = Hot();
  parameters.top_p = 0.6f;
  EXPECT_EQ(Frequencies(parameters, logits).size(), 2u);
  parameters.top_p = 0.4f;
  EXPECT_EQ(Frequencies(parameters, logits).size(), 1u);
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheLikeliest) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  SamplingParameters parameters = Hot();
  parameters.min_p = 0.5f;  // keeps ≥ 0.25
  EXPECT_EQ(Frequencies(parameters, logits).size(), 2u);
}

TEST(Sampler, LogitBiasMovesTheChoice) {
  SamplingParameters parameters;
  parameters.logit_bias = {{4, 10.0f}, {1, -10.0f}};
  EXPECT_EQ(Sampler(parameters, -1, {}).Sample(kLogits, 0)->token, 4);
}

TEST(Sampler, PresenceAndFrequencyPenaltiesCountTheOutput) {
  SamplingParameters parameters;
  parameters.presence_penalty = 0.5f;
  Sampler presence(parameters, -1, {});
  presence.Observe(1);
  EXPECT_EQ(presence.Sample(kLogits, 0)->token, 3);

  parameters = {};
  parameters.frequency_penalty = 0.6f;
  Sampler frequency(parameters, -1, {});
  for (const int32_t token : {1, 1, 3, 3}) frequency.Observe(token);  // 3 - 1.2 < 2
  EXPECT_EQ(frequency.Sample(kLogits, 0)->token, 2);
}

TEST(Sampler, RepetitionPenaltyCountsPromptAndOutputOnce) {
  SamplingParameters parameters;
  parameters.repetition_penalty = 2;
  Sampler sampler(parameters, -1, std::vector<int32_t>{1, 1, 1});
  sampler.Observe(1);
  EXPECT_EQ(sampler.Sample(kLogits, 0)->token, 3);
  sampler.Observe(3);
  EXPECT_EQ(sampler.Sample(kLogits, 0)->token, 2);
  // Negative logits get smaller, not larger.
  const std::vector<float> negative = {-1.0f, -1.5f};
  Sampler other(parameters, -1, std::vector<int32_t>{0});
  EXPECT_EQ(other.Sample(negative, 0)->token, 1);
}

TEST(Sampler, ADrawDependsOnSeedAndPositionAlone) {
  Sampler forwards(Hot(7), -1, {}), backwards(Hot(7), -1, {});
  std::map<int, int32_t> drawn;
  for (int position = 0; position < 100; ++position)
    drawn[position] = forwards.Sample(kLogits, position)->token;
  for (int position = 99; position >= 0; --position) {
    EXPECT_EQ(backwards.Sample(kLogits, position)->token, drawn[position]);
  }
  Sampler other(Hot(8), -1, {});
  int different = 0;
  for (int position = 0; position < 100; ++position) {
    different += other.Sample(kLogits, position)->token != drawn[position];
  }
  EXPECT_GT(different, 20);
}

TEST(Sampler, LogprobsAreTheModelsOwn) {
  SamplingParameters parameters = Hot();
  parameters.temperature = 0.1f;
  parameters.logit_bias = {{4, 100.0f}};
  const auto token = Sampler(parameters, 2, {}).Sample(kLogits, 0);
  ASSERT_TRUE(token.ok());
  double total = 0;
  for (const float logit : kLogits) total += std::exp(logit);
  EXPECT_EQ(token->token, 4);
  EXPECT_NEAR(*token->logprob, -1 - std::log(total), 1e-6);
  ASSERT_EQ(token->top_logprobs.size(), 2u);
  EXPECT_EQ(token->top_logprobs[0].token, 1);
  EXPECT_EQ(token->top_logprobs[1].token, 3);
  EXPECT_NEAR(token->top_logprobs[0].logprob, 3 - std::log(total), 1e-6);
}

TEST(Sampler, ZeroTopLogprobsGiveTheChosenOnesAlone) {
  const auto token = Sampler({}, 0, {}).Sample(kLogits, 0);
  EXPECT_LT(*token->logprob, 0);
  EXPECT_TRUE(token->top_logprobs.empty());
}

TEST(Sampler, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> logits = {0, bad};
    EXPECT_EQ(Sampler({}, -1, {}).Sample(logits, 0).status().code(), absl::StatusCode::kInternal);
  }
}

TEST(CounterUniform, StaysInRangeAndIsEven) {
  double total = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = CounterUniform(3, i);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    total += value;
  }
  EXPECT_NEAR(total / 10000, 0.5, 0.01);
}

}  // namespace
}  // namespace nestor
