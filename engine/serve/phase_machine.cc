#include "engine/serve/phase_machine.h"

#include <algorithm>
#include <utility>

namespace nestor {

PhaseMachine::PhaseMachine(PhaseLimits limits)
    : limits_(std::move(limits)),
      thinking_limit_(std::min(limits_.max_thinking_tokens.value_or(limits_.max_output_tokens),
                               limits_.max_output_tokens - 1)),
      phase_(limits_.thinking_open ? Phase::kThinking : Phase::kAnswer) {}

PhaseMachine::Verdict PhaseMachine::Advance(int32_t token) {
  return phase_ == Phase::kThinking ? AdvanceThinking(token) : AdvanceAnswer(token);
}

PhaseMachine::Verdict PhaseMachine::AdvanceThinking(int32_t token) {
  if (token == limits_.close_token) {
    phase_ = Phase::kAnswer;
    return Verdict::kClose;
  }
  if (thinking_tokens_ == thinking_limit_ || IsEos(token)) {
    phase_ = Phase::kAnswer;
    return Verdict::kForceClose;
  }
  ++thinking_tokens_;
  return Verdict::kAccept;
}

PhaseMachine::Verdict PhaseMachine::AdvanceAnswer(int32_t token) {
  if (IsEos(token)) return Verdict::kEnd;
  ++answer_tokens_;
  return thinking_tokens_ + answer_tokens_ == limits_.max_output_tokens ? Verdict::kAcceptLast
                                                                        : Verdict::kAccept;
}

bool PhaseMachine::IsEos(int32_t token) const {
  return std::find(limits_.eos_tokens.begin(), limits_.eos_tokens.end(), token) != limits_.eos_tokens.end();
}

}  // namespace nestor
