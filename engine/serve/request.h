// What goes into the engine (a generation request with its plan) and what comes out (deltas, one final
// outcome).
#ifndef NESTOR_ENGINE_SERVE_REQUEST_H_
#define NESTOR_ENGINE_SERVE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/route/router.h"

namespace nestor {

// THINKING: between <think> and </think>; ANSWER: after it, or all of a request that does not think.
enum class Phase { kThinking, kAnswer };

struct SamplingParameters {
  float temperature = 0;        // 0: greedy
  int top_k = 0;                // 0: all tokens
  float top_p = 1;              // (0, 1]
  float min_p = 0;              // [0, 1): drops tokens below min_p × the likeliest
  float presence_penalty = 0;   // [-2, 2], subtracted once from tokens already generated
  float frequency_penalty = 0;  // [-2, 2], subtracted once per earlier occurrence
  float repetition_penalty =
      1;  // > 0; divides positive, multiplies negative logits of tokens in prompt or output
  std::vector<std::pair<int32_t, float>> logit_bias;  // added to the token's logit; ids unique
  // The draw for position p depends on (seed, p) alone: the same request gives the same bytes whatever else
  // runs.
  uint64_t seed = 0;
};

struct GenerationRequest {
  std::string request_id;  // for logs and messages only; the engine does not require it to be unique
  std::vector<int32_t> prompt_tokens;  // not empty, ids below the vocabulary size
  Plan plan;                           // where it thinks, the prompt ends inside thinking
  SamplingParameters sampling;
  std::vector<std::string>
      stop_strings;  // matched in the answer's text only; the match is not part of the text
  bool ignore_eos = false;
  int top_logprobs = -1;  // -1: none; n ≥ 0: the chosen token's and the n likeliest (n ≤ 20)
  int priority = 0;       // higher first; equal ones in order of arrival
  absl::Time deadline = absl::InfiniteFuture();  // ends with DEADLINE_EXCEEDED, whether queued or running
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob =
      0;  // natural log of the model's own probability: before temperature, truncation and penalties
};

// One generated token as it is reported. Forced and closing tokens are not reported.
struct GeneratedToken {
  int32_t token = 0;
  std::optional<float> logprob;            // set where top_logprobs ≥ 0
  std::vector<TokenLogprob> top_logprobs;  // likeliest first
};

// A piece of output: text that became certain and the tokens that were generated since the last delta of the
// request. Text may lag behind its tokens (half a UTF-8 character, a possible stop string). Either part may
// be empty, not both.
struct Delta {
  Phase phase = Phase::kAnswer;
  std::string text;  // valid UTF-8
  std::vector<GeneratedToken> tokens;
};

enum class FinishReason { kStop, kStopString, kLength };

struct PhaseUsage {
  int submodel = 0;
  int generated_tokens = 0;  // forced tokens excluded; the end-of-sequence token excluded
  int computed_tokens = 0;   // rows the submodel ran in this phase: prefill, recompute and decode
};

struct Usage {
  int prompt_tokens = 0;
  int forced_tokens = 0;  // closing tokens the engine put in at a thinking limit
  PhaseUsage thinking;    // zeros where the request does not think
  PhaseUsage answer;
  int preemptions = 0;
};

struct Timings {
  absl::Duration queue;                       // submit to first step
  std::optional<absl::Duration> first_token;  // submit to first generated token of any phase
  std::optional<absl::Duration> first_answer_token;
  absl::Duration total;
};

// The end of a request: exactly one, after all deltas.
struct Outcome {
  absl::Status status;                               // OK, CANCELLED, DEADLINE_EXCEEDED or INTERNAL
  FinishReason finish_reason = FinishReason::kStop;  // meaningful where status is OK
  std::string stop_string;                           // the match, for kStopString
  bool thinking_truncated = false;                   // the engine closed thinking
  Usage usage;
  Timings timings;
};

// Receives the output of one request, on the engine's thread: must return quickly and never block or call the
// engine.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  virtual void OnDelta(Delta delta) = 0;
  // Called exactly once; nothing follows. The listener may be destroyed afterwards.
  virtual void OnOutcome(Outcome outcome) = 0;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_REQUEST_H_
