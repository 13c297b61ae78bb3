#include "server/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"

namespace nestor {
namespace {

TEST(WorkerPool, RefusesWhatIsBeyondItsBoundAndRunsTheRest) {
  std::atomic<int> done = 0;
  absl::Notification begun, proceed;
  {
    WorkerPool pool(1, /*pending_max=*/2);
    EXPECT_TRUE(pool.Post([&] {
      begun.Notify();
      proceed.WaitForNotification();
      ++done;
    }));
    begun.WaitForNotification();
    EXPECT_TRUE(pool.Post([&] { ++done; }));
    EXPECT_FALSE(pool.Post([&] { done = 100; }));
    proceed.Notify();
  }  // the pool runs what it took before it ends
  EXPECT_EQ(done, 2);
}

TEST(WorkerPool, TakesMoreWhenSomethingIsDone) {
  WorkerPool pool(1, /*pending_max=*/1);
  for (int i = 0; i < 100; ++i) {
    absl::Notification done;
    while (!pool.Post([&] { done.Notify(); })) {  // the last task may be about to end
    }
    done.WaitForNotification();
  }
}

}  // namespace
}  // namespace nestor
