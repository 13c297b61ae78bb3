#include "engine/serve/sequence.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace nestor {
namespace {

constexpr int kNoHandoffYet = std::numeric_limits<int>::max();

PhaseLimits LimitsOf(const GenerationRequest& request, const SequenceContext& context) {
  PhaseLimits limits;
  limits.thinking_open = request.plan.think;
  limits.max_thinking_tokens = request.plan.max_thinking_tokens;
  limits.max_output_tokens = request.plan.max_output_tokens;
  if (!context.close_tokens.empty()) limits.close_token = context.close_tokens.back();
  if (!request.ignore_eos) limits.eos_tokens = context.eos_tokens;
  return limits;
}

}  // namespace

Sequence::Sequence(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
                   const SequenceContext& context, uint64_t handle, absl::Time submitted)
    : request_(std::move(request)),
      listener_(std::move(listener)),
      context_(context),
      handle_(handle),
      submitted_(submitted),
      tokens_(request_.prompt_tokens),
      handoff_position_(request_.plan.think ? kNoHandoffYet : 0),
      phase_machine_(LimitsOf(request_, context)),
      sampler_(request_.sampling, request_.top_logprobs, request_.prompt_tokens),
      thinking_text_(*context.tokenizer, {}),
      answer_text_(*context.tokenizer, request_.stop_strings) {
  outcome_.usage.prompt_tokens = length();
  outcome_.usage.thinking.submodel = request_.plan.thinking_submodel;
  outcome_.usage.answer.submodel = request_.plan.answer_submodel;
}

SequenceView Sequence::View() const {
  const bool hands_off = TransplantsState() && computed_ < handoff_position_ && handoff_position_ < length();
  return {computed_, hands_off ? handoff_position_ : length(), length(), static_cast<int>(pages_.size())};
}

void Sequence::Admit(int slot, absl::Time now) {
  slot_ = slot;
  if (!started_) outcome_.timings.queue = now - submitted_;
  started_ = true;
}

std::vector<int> Sequence::Release() {
  computed_ = 0;
  slot_ = -1;
  return std::exchange(pages_, {});
}

StepSequence Sequence::Rows(int rows) const {
  return {slot_,
          SubmodelAt(computed_),
          computed_,
          absl::MakeConstSpan(tokens_).subspan(computed_, rows),
          pages_,
          /*logits_rows=*/computed_ + rows == length() ? 1 : 0};
}

void Sequence::Advance(int rows) {
  const bool thinks =
      TransplantsState() ? computed_ < handoff_position_ : phase_machine_.phase() == Phase::kThinking;
  (thinks ? outcome_.usage.thinking : outcome_.usage.answer).computed_tokens += rows;
  computed_ += rows;
}

Sequence::Progress Sequence::TakeLogits(absl::Span<const float> logits, absl::Time now) {
  absl::StatusOr<GeneratedToken> token = sampler_.Sample(logits, length());
  if (!token.ok()) {
    Finish(token.status(), now);
    return Progress::kComplete;
  }
  const PhaseMachine::Verdict verdict = phase_machine_.Advance(token->token);
  switch (verdict) {
    case PhaseMachine::Verdict::kAccept:
    case PhaseMachine::Verdict::kAcceptLast:
      break;
    case PhaseMachine::Verdict::kClose:
      return CloseThinking({token->token});
    case PhaseMachine::Verdict::kForceClose:
      outcome_.thinking_truncated = true;
      outcome_.usage.forced_tokens += static_cast<int>(context_.close_tokens.size());
      return CloseThinking(context_.close_tokens);
    case PhaseMachine::Verdict::kEnd:
      return Complete(FinishReason::kStop, now);
  }
  Accept(*std::move(token), now);
  if (!answer_text_.matched_stop().empty()) {
    outcome_.stop_string = answer_text_.matched_stop();
    return Complete(FinishReason::kStopString, now);
  }
  if (verdict == PhaseMachine::Verdict::kAcceptLast) return Complete(FinishReason::kLength, now);
  return Progress::kContinues;
}

void Sequence::Finish(absl::Status status, absl::Time now) {
  outcome_.status = std::move(status);
  outcome_.usage.thinking.generated_tokens = phase_machine_.thinking_tokens();
  outcome_.usage.answer.generated_tokens = phase_machine_.answer_tokens();
  outcome_.timings.total = now - submitted_;
  if (!started_) outcome_.timings.queue = outcome_.timings.total;
  finished_ = true;
  listener_->OnOutcome(std::move(outcome_));
}

bool Sequence::TransplantsState() const { return request_.plan.handoff == Handoff::kTransplant; }

int Sequence::SubmodelAt(int position) const {
  const bool thinks =
      TransplantsState() ? position < handoff_position_ : phase_machine_.phase() == Phase::kThinking;
  return thinks ? request_.plan.thinking_submodel : request_.plan.answer_submodel;
}

void Sequence::Accept(GeneratedToken token, absl::Time now) {
  const Phase phase = phase_machine_.phase();
  Timings& timings = outcome_.timings;
  if (!timings.first_token) timings.first_token = now - submitted_;
  if (phase == Phase::kAnswer && !timings.first_answer_token) timings.first_answer_token = now - submitted_;
  tokens_.push_back(token.token);
  sampler_.Observe(token.token);
  OutputText& text = phase == Phase::kThinking ? thinking_text_ : answer_text_;
  std::string piece = text.Push(token.token);
  Report({phase, std::move(piece), {std::move(token)}});
}

// The closing tokens join the sequence unreported. The last of them is the answering submodel's first to read
// under TRANSPLANT; under RECOMPUTE it reads everything from the start.
Sequence::Progress Sequence::CloseThinking(absl::Span<const int32_t> tokens) {
  Report({Phase::kThinking, thinking_text_.Flush(), {}});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (TransplantsState()) {
    handoff_position_ = length() - 1;
  } else if (request_.plan.thinking_submodel != request_.plan.answer_submodel) {
    computed_ = 0;
    return Progress::kStartsOver;
  }
  return Progress::kContinues;
}

void Sequence::Report(Delta delta) {
  if (!delta.text.empty() || !delta.tokens.empty()) listener_->OnDelta(std::move(delta));
}

Sequence::Progress Sequence::Complete(FinishReason reason, absl::Time now) {
  Report({Phase::kAnswer, answer_text_.Flush(), {}});
  outcome_.finish_reason = reason;
  Finish(absl::OkStatus(), now);
  return Progress::kComplete;
}

}  // namespace nestor
