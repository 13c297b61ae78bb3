// A listener that remembers what it was told and checks the order.
#ifndef NESTOR_TESTS_ENGINE_SERVE_RECORDING_LISTENER_H_
#define NESTOR_TESTS_ENGINE_SERVE_RECORDING_LISTENER_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/serve/request.h"

namespace nestor {

// For engines driven by hand: everything happens on the test's thread.
class RecordingListener : public GenerationListener {
 public:
  void OnDelta(Delta delta) override {
    EXPECT_FALSE(outcome.has_value()) << "a delta after the outcome";
    EXPECT_FALSE(answering && delta.phase == Phase::kThinking) << "thinking after the answer began";
    answering = delta.phase == Phase::kAnswer;
    (answering ? answer : thinking) += delta.text;
    for (const GeneratedToken& token : delta.tokens) tokens.push_back(token.token);
  }

  void OnOutcome(Outcome result) override {
    EXPECT_FALSE(outcome.has_value()) << "a second outcome";
    outcome = std::move(result);
  }

  std::string thinking;
  std::string answer;
  std::vector<int32_t> tokens;
  bool answering = false;
  std::optional<Outcome> outcome;
};

}  // namespace nestor

#endif  // NESTOR_TESTS_ENGINE_SERVE_RECORDING_LISTENER_H_
