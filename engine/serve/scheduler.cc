#include "engine/serve/scheduler.h"

#include <algorithm>

#include "engine/model/step.h"

namespace nestor {
namespace {

// How many rows the sequence can use of `rows_left`: up to its boundary, or else up to a grid point.
int NextRows(const SequenceView& sequence, int rows_left) {
  if (sequence.boundary - sequence.computed <= rows_left) return sequence.boundary - sequence.computed;
  const int grid_end = (sequence.computed + rows_left) / kPrefillGrid * kPrefillGrid;
  return std::max(0, grid_end - sequence.computed);
}

bool IsDecode(const SequenceView& sequence) { return sequence.length - sequence.computed == 1; }

class StepPlanner {
 public:
  explicit StepPlanner(const SchedulerSnapshot& snapshot)
      : snapshot_(snapshot),
        rows_left_(snapshot.rows_max),
        pages_left_(snapshot.pages_free),
        rows_(snapshot.running.size()),
        preempted_(snapshot.running.size()) {}

  StepPlan Plan() {
    PlanRunning(/*decode=*/true);
    PlanRunning(/*decode=*/false);
    StepPlan plan;
    for (size_t i = 0; i < preempted_.size(); ++i) {
      if (preempted_[i]) plan.preempted.push_back(static_cast<int>(i));
    }
    plan.running_rows = rows_;
    if (plan.preempted.empty()) Admit(plan);
    return plan;
  }

 private:
  void PlanRunning(bool decode) {
    for (size_t i = 0; i < snapshot_.running.size(); ++i) {
      if (!preempted_[i] && IsDecode(snapshot_.running[i]) == decode) PlanSequence(i);
    }
  }

  void PlanSequence(size_t index) {
    const SequenceView& sequence = snapshot_.running[index];
    const int rows = NextRows(sequence, rows_left_);
    const int pages = PagesFor(sequence.computed + rows) - sequence.pages;
    while (pages > pages_left_) {
      const size_t victim = LeastImportant();
      Preempt(victim);
      if (victim == index) return;
    }
    rows_[index] = rows;
    rows_left_ -= rows;
    pages_left_ -= std::max(pages, 0);
  }

  // There is always one: the sequence that is being planned.
  size_t LeastImportant() const {
    size_t index = preempted_.size() - 1;
    while (preempted_[index]) --index;
    return index;
  }

  // Takes back what the step had planned for it, too.
  void Preempt(size_t index) {
    const SequenceView& sequence = snapshot_.running[index];
    const int planned = std::max(0, PagesFor(sequence.computed + rows_[index]) - sequence.pages);
    pages_left_ += sequence.pages + (rows_[index] > 0 ? planned : 0);
    rows_left_ += rows_[index];
    rows_[index] = 0;
    preempted_[index] = true;
  }

  void Admit(StepPlan& plan) {
    int slots_left = snapshot_.slots_free;
    for (const SequenceView& sequence : snapshot_.waiting) {
      const int rows = NextRows(sequence, rows_left_);
      // Room for all its known tokens, or it would give way again before it has produced anything.
      const int pages = PagesFor(sequence.length);
      if (slots_left == 0 || rows == 0 || pages > pages_left_) return;
      plan.admitted_rows.push_back(rows);
      --slots_left;
      rows_left_ -= rows;
      pages_left_ -= pages;
    }
  }

  const SchedulerSnapshot& snapshot_;
  int rows_left_;
  int pages_left_;
  std::vector<int> rows_;
  std::vector<bool> preempted_;
};

}  // namespace

bool StepPlan::empty() const {
  return preempted.empty() && admitted_rows.empty() &&
         std::all_of(running_rows.begin(), running_rows.end(), [](int rows) { return rows == 0; });
}

StepPlan PlanStep(const SchedulerSnapshot& snapshot) { return StepPlanner(snapshot).Plan(); }

int PagesFor(int tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

}  // namespace nestor
