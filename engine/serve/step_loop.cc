#include "engine/serve/step_loop.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/check.h"

namespace nestor {
namespace {

SequenceView ViewOf(const std::unique_ptr<Sequence>& sequence) { return sequence->View(); }

bool IsBefore(const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
  if (a->priority() != b->priority()) return a->priority() > b->priority();
  return a->handle() < b->handle();  // handles are given in order of arrival
}

// Descending, so that the lowest number is handed out first.
std::vector<int> FreeList(int count) {
  std::vector<int> list(count);
  std::iota(list.rbegin(), list.rend(), 0);
  return list;
}

int TakeLast(std::vector<int>& list) {
  const int value = list.back();
  list.pop_back();
  return value;
}

}  // namespace

StepLoop::StepLoop(Executor& executor, int slots, int pages, int rows_max, std::function<absl::Time()> clock)
    : executor_(executor),
      slots_(slots),
      pages_(pages),
      rows_max_(rows_max),
      clock_(std::move(clock)),
      free_slots_(FreeList(slots)),
      free_pages_(FreeList(pages)) {}

void StepLoop::Add(std::unique_ptr<Sequence> sequence) { Insert(waiting_, std::move(sequence)); }

void StepLoop::Insert(Sequences& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place = std::upper_bound(sequences.begin(), sequences.end(), sequence, IsBefore);
  sequences.insert(place, std::move(sequence));
}

bool StepLoop::End(uint64_t handle, const absl::Status& status) {
  for (Sequences* sequences : {&waiting_, &running_}) {
    const auto found = std::find_if(sequences->begin(), sequences->end(),
                                    [&](const auto& sequence) { return sequence->handle() == handle; });
    if (found == sequences->end()) continue;
    FreeCaches(**found);
    (*found)->Finish(status, clock_());
    sequences->erase(found);
    return true;
  }
  return false;
}

void StepLoop::EndAll(const absl::Status& status) {
  for (Sequences* sequences : {&waiting_, &running_}) {
    for (const auto& sequence : *sequences) {
      FreeCaches(*sequence);
      sequence->Finish(status, clock_());
    }
    sequences->clear();
  }
  CheckAccountWhenIdle();
}

void StepLoop::EndOverdue() {
  const absl::Time now = clock_();
  std::vector<uint64_t> overdue;
  for (const Sequences* sequences : {&waiting_, &running_}) {
    for (const auto& sequence : *sequences) {
      if (sequence->deadline() <= now) overdue.push_back(sequence->handle());
    }
  }
  for (const uint64_t handle : overdue) {
    End(handle, absl::DeadlineExceededError("the request's deadline passed before it was complete"));
  }
}

bool StepLoop::RunOnce() {
  EndOverdue();
  if (waiting_.empty() && running_.empty()) {
    CheckAccountWhenIdle();
    return false;
  }
  const StepPlan plan = Plan();
  // Whatever is admitted fits alone, so somebody always moves.
  NESTOR_CHECK(!plan.empty()) << "the scheduler planned nothing for " << running_.size() << " running and "
                              << waiting_.size() << " waiting requests";
  Commit(plan);
  RunStep();
  return true;
}

StepPlan StepLoop::Plan() const {
  SchedulerSnapshot snapshot;
  std::transform(running_.begin(), running_.end(), std::back_inserter(snapshot.running), ViewOf);
  std::transform(waiting_.begin(), waiting_.end(), std::back_inserter(snapshot.waiting), ViewOf);
  snapshot.slots_free = slots_free();
  snapshot.pages_free = pages_free();
  snapshot.rows_max = rows_max_;
  return PlanStep(snapshot);
}

void StepLoop::Commit(const StepPlan& plan) {
  shares_.clear();
  for (size_t i = 0; i < plan.running_rows.size(); ++i) {
    if (plan.running_rows[i] > 0) shares_.push_back({running_[i].get(), plan.running_rows[i]});
  }
  Preempt(plan.preempted);
  Admit(plan.admitted_rows);
  for (const Share& share : shares_) {
    const int end = share.sequence->View().computed + share.rows;
    while (static_cast<int>(share.sequence->pages().size()) < PagesFor(end)) {
      share.sequence->AddPage(TakeLast(free_pages_));
    }
  }
}

void StepLoop::Preempt(const std::vector<int>& indices) {
  for (auto index = indices.rbegin(); index != indices.rend(); ++index) {
    std::unique_ptr<Sequence> sequence = std::move(running_[*index]);
    running_.erase(running_.begin() + *index);
    FreeCaches(*sequence);
    sequence->CountPreemption();
    Insert(waiting_, std::move(sequence));
  }
}

void StepLoop::Admit(const std::vector<int>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    std::unique_ptr<Sequence> sequence = std::move(waiting_[i]);
    sequence->Admit(TakeLast(free_slots_), clock_());
    executor_.ResetSlot(sequence->slot());
    for (int page = 0; page < PagesFor(sequence->length()); ++page) sequence->AddPage(TakeLast(free_pages_));
    shares_.push_back({sequence.get(), rows[i]});
    Insert(running_, std::move(sequence));
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + rows.size());
}

void StepLoop::RunStep() {
  if (shares_.empty()) return;  // a step that only made room
  std::vector<StepSequence> rows;
  for (const Share& share : shares_) rows.push_back(share.sequence->Rows(share.rows));
  const std::vector<absl::Span<const float>> logits = executor_.Step(rows);
  ++steps_;
  const absl::Time now = clock_();
  size_t next_logits = 0;
  for (const Share& share : shares_) {
    share.sequence->Advance(share.rows);
    if (!share.sequence->WantsToken()) continue;
    const Sequence::Progress progress = share.sequence->TakeLogits(logits[next_logits++], now);
    if (progress == Sequence::Progress::kStartsOver) executor_.ResetSlot(share.sequence->slot());
    if (progress == Sequence::Progress::kComplete) FreeCaches(*share.sequence);
  }
  std::erase_if(running_, [](const auto& sequence) { return sequence->finished(); });
}

void StepLoop::FreeCaches(Sequence& sequence) {
  if (sequence.slot() >= 0) free_slots_.push_back(sequence.slot());
  const std::vector<int> pages = sequence.Release();
  free_pages_.insert(free_pages_.end(), pages.begin(), pages.end());
}

void StepLoop::CheckAccountWhenIdle() const {
  NESTOR_CHECK(slots_free() == slots_ && pages_free() == pages_)
      << "idle, but " << slots_free() << " of " << slots_ << " slots and " << pages_free() << " of " << pages_
      << " pages are free";
}

}  // namespace nestor
