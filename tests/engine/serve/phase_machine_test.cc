#include "engine/serve/phase_machine.h"

#include <gtest/gtest.h>

namespace nestor {
namespace {

using Verdict = PhaseMachine::Verdict;

constexpr int32_t kWord = 50, kClose = 13, kEos = 11;

PhaseLimits Limits(std::optional<int> max_thinking_tokens, int max_output_tokens, bool thinking_open = true) {
  return {thinking_open, max_thinking_tokens, max_output_tokens, kClose, {2, kEos}};
}

TEST(PhaseMachine, TheModelClosesByItself) {
  PhaseMachine machine(Limits(std::nullopt, 100));
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAccept);
  EXPECT_EQ(machine.phase(), Phase::kThinking);
  EXPECT_EQ(machine.Advance(kClose), Verdict::kClose);
  EXPECT_EQ(machine.phase(), Phase::kAnswer);
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAccept);
  EXPECT_EQ(machine.Advance(kEos), Verdict::kEnd);
  EXPECT_EQ(machine.thinking_tokens(), 1);
  EXPECT_EQ(machine.answer_tokens(), 1);
}

TEST(PhaseMachine, TheLimitIsExact) {
  for (const int limit : {0, 1, 2, 17}) {
    PhaseMachine machine(Limits(limit, 100));
    for (int i = 0; i < limit; ++i) EXPECT_EQ(machine.Advance(kWord), Verdict::kAccept);
    EXPECT_EQ(machine.Advance(kWord), Verdict::kForceClose) << limit;
    EXPECT_EQ(machine.thinking_tokens(), limit);
    EXPECT_EQ(machine.phase(), Phase::kAnswer);
  }
}

TEST(PhaseMachine, AtTheLimitTheModelMayStillCloseByItself) {
  PhaseMachine machine(Limits(1, 100));
  machine.Advance(kWord);
  EXPECT_EQ(machine.Advance(kClose), Verdict::kClose);
}

TEST(PhaseMachine, EndOfSequenceInsideThinkingClosesIt) {
  PhaseMachine machine(Limits(std::nullopt, 100));
  EXPECT_EQ(machine.Advance(kEos), Verdict::kForceClose);
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAccept);
  EXPECT_EQ(machine.answer_tokens(), 1);
}

TEST(PhaseMachine, AnAnswerTokenAlwaysFollowsThinking) {
  PhaseMachine machine(Limits(std::nullopt, 3));
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAccept);
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAccept);
  EXPECT_EQ(machine.Advance(kWord), Verdict::kForceClose);
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAcceptLast);
  EXPECT_EQ(machine.thinking_tokens(), 2);
  EXPECT_EQ(machine.answer_tokens(), 1);
}

TEST(PhaseMachine, ASingleOutputTokenIsAnAnswer) {
  PhaseMachine machine(Limits(64, 1));
  EXPECT_EQ(machine.Advance(kWord), Verdict::kForceClose);
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAcceptLast);
}

TEST(PhaseMachine, WithoutThinkingTheCloseTokenIsAnOrdinaryOne) {
  PhaseMachine machine(Limits(std::nullopt, 2, /*thinking_open=*/false));
  EXPECT_EQ(machine.Advance(kClose), Verdict::kAccept);
  EXPECT_EQ(machine.phase(), Phase::kAnswer);
  EXPECT_EQ(machine.Advance(kWord), Verdict::kAcceptLast);
}

TEST(PhaseMachine, IgnoredEndOfSequenceCountsAsAToken) {
  PhaseLimits limits = Limits(1, 3);
  limits.eos_tokens.clear();
  PhaseMachine machine(limits);
  EXPECT_EQ(machine.Advance(kEos), Verdict::kAccept);
  EXPECT_EQ(machine.Advance(kEos), Verdict::kForceClose);
  EXPECT_EQ(machine.Advance(kEos), Verdict::kAccept);
  EXPECT_EQ(machine.Advance(kEos), Verdict::kAcceptLast);
}

}  // namespace
}  // namespace nestor
