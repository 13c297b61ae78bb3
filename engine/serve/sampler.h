// Chooses the next token of one sequence from its logits.
#ifndef NESTOR_ENGINE_SERVE_SAMPLER_H_
#define NESTOR_ENGINE_SERVE_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/serve/request.h"

namespace nestor {

// Keeps what the penalties need to know of the sequence so far. Draws are counter-based: the token at a
// position depends on the seed, the position and the logits, not on when or beside whom it is drawn.
class Sampler {
 public:
  Sampler(const SamplingParameters& parameters, int top_logprobs, absl::Span<const int32_t> prompt_tokens);

  // Order: logit bias, penalties, temperature, top-k, top-p, min-p, draw. Equal logits: the lowest id first.
  // INTERNAL where the logits are not finite.
  absl::StatusOr<GeneratedToken> Sample(absl::Span<const float> logits, int position);

  // Tells the penalties of a token that became output.
  void Observe(int32_t token) { ++output_counts_[token]; }

 private:
  struct Candidate {
    float logit;
    int32_t token;
  };

  void Adjust(std::vector<float>& logits) const;
  int32_t Draw(absl::Span<const float> logits, int position);
  // Leaves out what top-k, top-p and min-p exclude. The largest logit must be 0.
  void Truncate(std::vector<Candidate>& candidates) const;
  void FillLogprobs(absl::Span<const float> logits, GeneratedToken& token) const;

  const SamplingParameters parameters_;
  const int top_logprobs_;
  absl::flat_hash_set<int32_t> prompt_tokens_;  // filled only where the repetition penalty needs it
  absl::flat_hash_map<int32_t, int> output_counts_;
};

// Uniform in [0, 1), a function of its arguments alone.
double CounterUniform(uint64_t seed, uint64_t counter);

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_SAMPLER_H_
