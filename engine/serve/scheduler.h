// Plans one step: who is admitted, who gives way, and how many rows each sequence gets. A pure function of a
// snapshot.
#ifndef NESTOR_ENGINE_SERVE_SCHEDULER_H_
#define NESTOR_ENGINE_SERVE_SCHEDULER_H_

#include <vector>

#include "absl/types/span.h"

namespace nestor {

// Where a prefill that does not fit into one step may be cut: at multiples of this many tokens from the start
// of the sequence (DESIGN §6), so that the cut does not depend on the load.
inline constexpr int kPrefillGrid = 64;

// One sequence as the scheduler sees it.
struct SequenceView {
  int computed = 0;  // tokens its state has seen
  int boundary = 0;  // > computed: where the next run of rows must end at the latest: the end of the known
                     // tokens, or the handoff to another submodel
  int length =
      0;  // ≥ boundary: tokens known, all of which must be computed before the next one can be sampled
  int pages = 0;  // KV pages held
};

struct SchedulerSnapshot {
  std::vector<SequenceView> running;  // most important first: by priority, then by arrival
  std::vector<SequenceView> waiting;  // the same order
  int slots_free = 0;
  int pages_free = 0;
  int rows_max = 0;  // ≥ kPrefillGrid
};

struct StepPlan {
  std::vector<int>
      preempted;  // indices of `running` that give back slot and pages and wait again; lose nothing
  std::vector<int> running_rows;   // rows for each of `running`; 0: pauses
  std::vector<int> admitted_rows;  // rows for the first of `waiting`, which are admitted

  bool empty() const;
};

// Decoding sequences come first, then prefill, each in the order of importance; the least important give way
// when pages run out. Nobody is admitted in a step in which somebody gives way.
StepPlan PlanStep(const SchedulerSnapshot& snapshot);

// KV pages that hold `tokens` positions.
int PagesFor(int tokens);

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_SCHEDULER_H_
