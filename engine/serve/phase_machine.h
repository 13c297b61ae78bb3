// Decides what a sampled token means: part of thinking, part of the answer, the change between them, or the
// end.
#ifndef NESTOR_ENGINE_SERVE_PHASE_MACHINE_H_
#define NESTOR_ENGINE_SERVE_PHASE_MACHINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/serve/request.h"

namespace nestor {

struct PhaseLimits {
  bool thinking_open = false;              // start in THINKING
  std::optional<int> max_thinking_tokens;  // exact; absent: max_output_tokens - 1
  int max_output_tokens = 1;               // thinking and answer together, ≥ 1
  int32_t close_token = -1;                // ends thinking; -1 where the model has none
  std::vector<int> eos_tokens;             // empty to ignore them
};

// THINKING → ANSWER, never back. Forced and closing tokens are not counted. Whatever the limits, the answer
// gets at least one token: thinking is closed at max_output_tokens - 1 at the latest, and an end-of-sequence
// token inside thinking closes it instead of ending the request.
class PhaseMachine {
 public:
  enum class Verdict {
    kAccept,      // one more token of the phase
    kAcceptLast,  // the same, and max_output_tokens is reached
    kClose,       // the model closed thinking: the token joins the sequence but is not output
    kForceClose,  // drop the token, append the close sequence instead
    kEnd,         // end of sequence: drop the token, the answer is complete
  };

  explicit PhaseMachine(PhaseLimits limits);

  Verdict Advance(int32_t token);

  // Of the last accepted and the next token.
  Phase phase() const { return phase_; }
  int thinking_tokens() const { return thinking_tokens_; }
  int answer_tokens() const { return answer_tokens_; }

 private:
  Verdict AdvanceThinking(int32_t token);
  Verdict AdvanceAnswer(int32_t token);
  bool IsEos(int32_t token) const;

  const PhaseLimits limits_;
  const int thinking_limit_;
  Phase phase_;
  int thinking_tokens_ = 0;
  int answer_tokens_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_PHASE_MACHINE_H_
