// One request while the engine has it: its tokens, its place in the caches, its phase, its output.
#ifndef NESTOR_ENGINE_SERVE_SEQUENCE_H_
#define NESTOR_ENGINE_SERVE_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/model/step.h"
#include "engine/serve/output_text.h"
#include "engine/serve/phase_machine.h"
#include "engine/serve/request.h"
#include "engine/serve/sampler.h"
#include "engine/serve/scheduler.h"
#include "engine/text/tokenizer.h"

namespace nestor {

// How the model ends and closes; the same for all sequences.
struct SequenceContext {
  const Tokenizer* tokenizer = nullptr;
  std::vector<int> eos_tokens;
  std::vector<int32_t>
      close_tokens;  // the close sequence, forced at a thinking limit; its last token closes thinking
};

// Owned and used by the engine's thread alone. Every path ends in exactly one Finish.
//
// What has to be computed is always tokens()[computed(), length()): prefill, decode, the second prefill of a
// RECOMPUTE handoff and the one after a preemption are the same thing. Which submodel runs a position follows
// from the plan: RECOMPUTE runs all of them with the phase's submodel, TRANSPLANT those before the handoff
// with the thinking submodel.
class Sequence {
 public:
  Sequence(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
           const SequenceContext& context, uint64_t handle, absl::Time submitted);

  uint64_t handle() const { return handle_; }
  int priority() const { return request_.priority; }
  absl::Time deadline() const { return request_.deadline; }
  int length() const { return static_cast<int>(tokens_.size()); }
  SequenceView View() const;

  // Caches: the engine gives and takes them.
  int slot() const { return slot_; }
  const std::vector<int>& pages() const { return pages_; }
  void Admit(int slot, absl::Time now);
  void AddPage(int page) { pages_.push_back(page); }
  // Gives up the caches; everything has to be computed again.
  std::vector<int> Release();

  // The next `rows` tokens as a part of a step; logits are wanted where they reach the end.
  StepSequence Rows(int rows) const;
  // The step with those rows is done.
  void Advance(int rows);
  bool WantsToken() const { return computed_ == length(); }

  enum class Progress {
    kContinues,
    kStartsOver,  // a RECOMPUTE handoff: the slot must be reset, everything is computed again
    kComplete,    // the request has had its outcome
  };
  // Takes the logits of the last token: samples, reports, moves the phase. An error ends the request with its
  // status.
  Progress TakeLogits(absl::Span<const float> logits, absl::Time now);

  // The only way out.
  void Finish(absl::Status status, absl::Time now);
  bool finished() const { return finished_; }

  void CountPreemption() { ++outcome_.usage.preemptions; }

 private:
  bool TransplantsState() const;
  int SubmodelAt(int position) const;
  void Accept(GeneratedToken token, absl::Time now);
  Progress CloseThinking(absl::Span<const int32_t> tokens);
  void Report(Delta delta);
  Progress Complete(FinishReason reason, absl::Time now);

  GenerationRequest request_;
  const std::shared_ptr<GenerationListener> listener_;
  const SequenceContext& context_;
  const uint64_t handle_;
  const absl::Time submitted_;

  std::vector<int32_t> tokens_;  // prompt, output, closing tokens
  int computed_ = 0;             // tokens the state has seen
  int handoff_position_;         // TRANSPLANT: positions from here on run the answering submodel
  int slot_ = -1;                // -1: waiting
  std::vector<int> pages_;

  PhaseMachine phase_machine_;
  Sampler sampler_;
  OutputText thinking_text_;
  OutputText answer_text_;
  Outcome outcome_;
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_SEQUENCE_H_
