#include "engine/serve/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nestor {
namespace {

// Likelier first, equal ones by id: a total order, so that sorting is deterministic.
constexpr auto kLikelierFirst = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
};

int32_t Argmax(absl::Span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// log Σ exp(logit), in double so that the order of a large vocabulary does not show.
double LogSumExp(absl::Span<const float> logits) {
  const double largest = logits[Argmax(logits)];
  double total = 0;
  for (const float logit : logits) total += std::exp(logit - largest);
  return largest + std::log(total);
}

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double CounterUniform(uint64_t seed, uint64_t counter) {
  constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;
  const uint64_t bits = Mix(Mix(seed + kGamma) + (counter + 1) * kGamma);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Sampler::Sampler(const SamplingParameters& parameters, int top_logprobs,
                 absl::Span<const int32_t> prompt_tokens)
    : parameters_(parameters), top_logprobs_(top_logprobs) {
  if (parameters.repetition_penalty != 1) prompt_tokens_.insert(prompt_tokens.begin(), prompt_tokens.end());
}

absl::StatusOr<GeneratedToken> Sampler::Sample(absl::Span<const float> logits, int position) {
  std::vector<float> adjusted(logits.begin(), logits.end());
  Adjust(adjusted);
  for (const float logit : adjusted) {
    if (!std::isfinite(logit)) return absl::InternalError("the model gave logits that are not finite");
  }
  GeneratedToken result;
  result.token = parameters_.temperature == 0 ? Argmax(adjusted) : Draw(adjusted, position);
  if (top_logprobs_ >= 0) FillLogprobs(logits, result);
  return result;
}

void Sampler::Adjust(std::vector<float>& logits) const {
  for (const auto& [token, bias] : parameters_.logit_bias) logits[token] += bias;
  if (const float penalty = parameters_.repetition_penalty; penalty != 1) {
    const auto penalise = [&](int32_t token) { logits[token] *= logits[token] > 0 ? 1 / penalty : penalty; };
    for (const int32_t token : prompt_tokens_) penalise(token);
    for (const auto& [token, count] : output_counts_) {
      if (!prompt_tokens_.contains(token)) penalise(token);
    }
  }
  for (const auto& [token, count] : output_counts_) {
    logits[token] -= parameters_.presence_penalty + parameters_.frequency_penalty * static_cast<float>(count);
  }
}

int32_t Sampler::Draw(absl::Span<const float> logits, int position) {
  std::vector<Candidate> candidates(logits.size());
  const float largest = logits[Argmax(logits)];
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = {(logits[i] - largest) / parameters_.temperature, static_cast<int32_t>(i)};
  }
  Truncate(candidates);

  double total = 0;
  for (const Candidate& candidate : candidates) total += std::exp(double{candidate.logit});
  double left = CounterUniform(parameters_.seed, position) * total;
  for (const Candidate& candidate : candidates) {
    left -= std::exp(double{candidate.logit});
    if (left < 0) return candidate.token;
  }
  return candidates.back().token;  // rounding only
}

void Sampler::Truncate(std::vector<Candidate>& candidates) const {
  if (parameters_.top_k > 0 || parameters_.top_p < 1 || parameters_.min_p > 0) {
    std::sort(candidates.begin(), candidates.end(), kLikelierFirst);
  }
  if (parameters_.top_k > 0 && candidates.size() > static_cast<size_t>(parameters_.top_k)) {
    candidates.resize(parameters_.top_k);
  }
  if (parameters_.top_p < 1) {  // the fewest whose probability reaches top_p
    double total = 0;
    for (const Candidate& candidate : candidates) total += std::exp(double{candidate.logit});
    double reached = 0;
    size_t kept = 0;
    while (kept < candidates.size() && reached < parameters_.top_p * total) {
      reached += std::exp(double{candidates[kept++].logit});
    }
    candidates.resize(std::max<size_t>(kept, 1));
  }
  if (parameters_.min_p > 0) {
    const float least = std::log(parameters_.min_p);
    while (candidates.back().logit < least) candidates.pop_back();
  }
}

void Sampler::FillLogprobs(absl::Span<const float> logits, GeneratedToken& token) const {
  const double normaliser = LogSumExp(logits);
  const auto logprob = [&](int32_t id) { return static_cast<float>(logits[id] - normaliser); };
  token.logprob = logprob(token.token);
  std::vector<Candidate> candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates[i] = {logits[i], static_cast<int32_t>(i)};
  const size_t count = std::min<size_t>(top_logprobs_, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + count, candidates.end(), kLikelierFirst);
  for (size_t i = 0; i < count; ++i) {
    token.top_logprobs.push_back({candidates[i].token, logprob(candidates[i].token)});
  }
}

}  // namespace nestor
