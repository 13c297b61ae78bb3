#include "engine/serve/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/model/step.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A sequence that has seen `computed` of `length` tokens and holds just the pages it needs.
SequenceView Sequence(int computed, int length) { return {computed, length, length, PagesFor(computed)}; }

SchedulerSnapshot Snapshot(int slots_free = 4, int pages_free = 1000, int rows_max = 128) {
  SchedulerSnapshot snapshot;
  snapshot.slots_free = slots_free;
  snapshot.pages_free = pages_free;
  snapshot.rows_max = rows_max;
  return snapshot;
}

TEST(Scheduler, DecodeAndPrefillShareAStepDecodeFirst) {
  SchedulerSnapshot snapshot = Snapshot();
  snapshot.running = {Sequence(0, 1000), Sequence(20, 21), Sequence(30, 31)};
  const StepPlan plan = PlanStep(snapshot);
  EXPECT_THAT(plan.running_rows, ElementsAre(64, 1, 1));  // 126 rows are left: one grid point
  EXPECT_THAT(plan.preempted, IsEmpty());
}

TEST(Scheduler, PrefillIsCutAtGridPointsOnly) {
  SchedulerSnapshot snapshot = Snapshot();
  snapshot.running = {Sequence(0, 1000)};
  EXPECT_THAT(PlanStep(snapshot).running_rows, ElementsAre(128));
  snapshot.running = {Sequence(0, 100)};
  EXPECT_THAT(PlanStep(snapshot).running_rows, ElementsAre(100));
  snapshot.rows_max = 99;
  EXPECT_THAT(PlanStep(snapshot).running_rows, ElementsAre(64));
  snapshot.running = {Sequence(70, 1000)};  // after a handoff: 70 is off the grid, the next cut is on it
  EXPECT_THAT(PlanStep(snapshot).running_rows, ElementsAre(58));
}

TEST(Scheduler, RowsStopAtAHandoff) {
  SchedulerSnapshot snapshot = Snapshot();
  snapshot.running = {{0, 40, 90, 0}};
  EXPECT_THAT(PlanStep(snapshot).running_rows, ElementsAre(40));
}

TEST(Scheduler, AdmitsInOrderWhileSlotsRowsAndPagesLast) {
  SchedulerSnapshot snapshot = Snapshot(/*slots_free=*/2);
  snapshot.waiting = {Sequence(0, 10), Sequence(0, 10), Sequence(0, 10)};
  EXPECT_THAT(PlanStep(snapshot).admitted_rows, ElementsAre(10, 10));
  snapshot.slots_free = 4;
  snapshot.pages_free = 1;
  EXPECT_THAT(PlanStep(snapshot).admitted_rows, ElementsAre(10));
  snapshot.pages_free = 100;
  snapshot.waiting = {Sequence(0, 1600), Sequence(0, 10)};  // the second does not overtake
  snapshot.pages_free = 99;
  EXPECT_THAT(PlanStep(snapshot).admitted_rows, IsEmpty());
}

TEST(Scheduler, TheLeastImportantGivesWayWhenPagesRunOut) {
  SchedulerSnapshot snapshot = Snapshot(/*slots_free=*/4, /*pages_free=*/0);
  snapshot.running = {Sequence(16, 17), Sequence(16, 17), Sequence(20, 21)};
  snapshot.waiting = {Sequence(0, 1)};
  const StepPlan plan = PlanStep(snapshot);
  EXPECT_THAT(plan.preempted, ElementsAre(2));  // its two pages serve the first two
  EXPECT_THAT(plan.running_rows, ElementsAre(1, 1, 0));
  EXPECT_THAT(plan.admitted_rows, IsEmpty());
}

TEST(Scheduler, ASequenceMayGiveWayItself) {
  SchedulerSnapshot snapshot = Snapshot(/*slots_free=*/4, /*pages_free=*/0);
  snapshot.running = {Sequence(20, 21), Sequence(16, 17)};
  const StepPlan plan = PlanStep(snapshot);
  EXPECT_THAT(plan.preempted, ElementsAre(1));
  EXPECT_THAT(plan.running_rows, ElementsAre(1, 0));
}

TEST(Scheduler, PrefillOfTheImportantTakesBackWhatWasPlannedForOthers) {
  SchedulerSnapshot snapshot = Snapshot(/*slots_free=*/4, /*pages_free=*/1);
  snapshot.running = {Sequence(64, 96), Sequence(16, 17)};  // needs 2 pages; the decode took the free one
  const StepPlan plan = PlanStep(snapshot);
  EXPECT_THAT(plan.preempted, ElementsAre(1));
  EXPECT_THAT(plan.running_rows, ElementsAre(32, 0));
}

// Whatever the snapshot: limits hold, nobody who could move alone is left without progress.
TEST(Scheduler, RandomSnapshotsStayWithinLimitsAndMove) {
  std::mt19937 random(5);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 5000; ++round) {
    const int pages_total = 40;
    SchedulerSnapshot snapshot = Snapshot(draw(0, 3), pages_total, draw(kPrefillGrid, 256));
    for (int i = draw(0, 6); i > 0; --i) {
      const int length = draw(1, 200);
      SequenceView sequence = Sequence(draw(0, length - 1), length);
      sequence.boundary = draw(sequence.computed + 1, length);
      if (sequence.pages > snapshot.pages_free) break;
      snapshot.pages_free -= sequence.pages;
      snapshot.running.push_back(sequence);
    }
    for (int i = draw(0, 3); i > 0; --i) snapshot.waiting.push_back(Sequence(0, draw(1, 200)));
    const StepPlan plan = PlanStep(snapshot);

    int rows = 0, pages = snapshot.pages_free;
    for (const int index : plan.preempted) {
      EXPECT_EQ(plan.running_rows[index], 0);
      pages += snapshot.running[index].pages;
    }
    for (size_t i = 0; i < snapshot.running.size(); ++i) {
      const SequenceView& sequence = snapshot.running[i];
      const int end = sequence.computed + plan.running_rows[i];
      EXPECT_LE(end, sequence.boundary);
      EXPECT_TRUE(end == sequence.boundary || end % kPrefillGrid == 0 || plan.running_rows[i] == 0);
      if (plan.running_rows[i] > 0) pages -= std::max(0, PagesFor(end) - sequence.pages);
      rows += plan.running_rows[i];
    }
    for (size_t i = 0; i < plan.admitted_rows.size(); ++i) {
      pages -= PagesFor(snapshot.waiting[i].length);
      rows += plan.admitted_rows[i];
    }
    EXPECT_LE(rows, snapshot.rows_max);
    EXPECT_GE(pages, 0);
    EXPECT_LE(plan.admitted_rows.size(), static_cast<size_t>(snapshot.slots_free));
    const bool can_move = !snapshot.running.empty() || (!snapshot.waiting.empty() && snapshot.slots_free > 0);
    EXPECT_EQ(plan.empty(), !can_move) << "round " << round;
  }
}

}  // namespace
}  // namespace nestor
