// The loop's body: queue, caches and sequences of one executor, a step at a time. Single-threaded; the clock
// is injected.
#ifndef NESTOR_ENGINE_SERVE_STEP_LOOP_H_
#define NESTOR_ENGINE_SERVE_STEP_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/model/executor.h"
#include "engine/serve/scheduler.h"
#include "engine/serve/sequence.h"

namespace nestor {

class StepLoop {
 public:
  // `slots` and `pages` are what the executor was created with.
  StepLoop(Executor& executor, int slots, int pages, int rows_max, std::function<absl::Time()> clock);

  // Queues by priority, then in order of arrival.
  void Add(std::unique_ptr<Sequence> sequence);

  // Ends the sequence, queued or running, and frees what it holds. False where there is none of that handle.
  bool End(uint64_t handle, const absl::Status& status);
  void EndAll(const absl::Status& status);

  // Ends what is past its deadline, then plans and runs one step. False: there was nothing to do.
  bool RunOnce();

  int queued() const { return static_cast<int>(waiting_.size()); }
  int running() const { return static_cast<int>(running_.size()); }
  int slots_free() const { return static_cast<int>(free_slots_.size()); }
  int pages_free() const { return static_cast<int>(free_pages_.size()); }
  int64_t steps() const { return steps_; }

 private:
  using Sequences = std::vector<std::unique_ptr<Sequence>>;  // by priority, then by arrival

  static void Insert(Sequences& sequences, std::unique_ptr<Sequence> sequence);
  void EndOverdue();
  StepPlan Plan() const;
  void Commit(const StepPlan& plan);
  void Preempt(const std::vector<int>& indices);
  void Admit(const std::vector<int>& rows);
  void RunStep();
  void FreeCaches(Sequence& sequence);
  void CheckAccountWhenIdle() const;

  // A sequence's share of the step at hand.
  struct Share {
    Sequence* sequence;
    int rows;
  };

  Executor& executor_;
  const int slots_;
  const int pages_;
  const int rows_max_;
  const std::function<absl::Time()> clock_;
  Sequences waiting_;
  Sequences running_;
  std::vector<int> free_slots_;
  std::vector<int> free_pages_;
  std::vector<Share> shares_;
  int64_t steps_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_STEP_LOOP_H_
