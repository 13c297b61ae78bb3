// Runs steps on some device and owns the state of all sequences there. The one virtual seam between the
// engine and a backend: one call a step.
#ifndef NESTOR_ENGINE_MODEL_EXECUTOR_H_
#define NESTOR_ENGINE_MODEL_EXECUTOR_H_

#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/model/graph.h"
#include "engine/model/step.h"

namespace nestor {

// What an executor allocates at start; nothing is allocated while stepping.
struct ExecutorLimits {
  int slots = 0;            // recurrent states
  int pages = 0;            // KV pages of kPageTokens positions, each for all attention layers
  int rows_max = 0;         // rows of one step
  int logits_rows_max = 0;  // rows of one step whose logits are wanted
};

// The recurrent state of one Mamba layer of one sequence, in the widths of its submodel.
struct RecurrentState {
  std::vector<float> conv;  // (taps - 1, channels), oldest first
  std::vector<float> ssm;   // (heads, head_dim, state)
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual std::string_view backend_name() const = 0;  // "cpu"

  // Makes the slot's recurrent state that of an empty sequence.
  virtual void ResetSlot(int slot) = 0;

  // Runs all sequences' tokens and advances their state. Within the limits; each slot at most once. The
  // result holds the logits of every wanted row, in the order of `sequences`, (vocab) each, valid until the
  // next step.
  virtual std::vector<absl::Span<const float>> Step(absl::Span<const StepSequence> sequences,
                                                    const ResidualObserver* observer = nullptr) = 0;

  // For tests and `nestor-checkpoint verify`.
  virtual RecurrentState ReadRecurrentState(int slot, int layer, int submodel) const = 0;
};

// Rank of each submodel by width, 0 for the widest: by hidden size, then in the descriptor's order.
std::vector<int> WidthRank(const Model& model);

}  // namespace nestor

#endif  // NESTOR_ENGINE_MODEL_EXECUTOR_H_
