// Threads for work that must not hold up gRPC: checking and tokenizing requests.
#ifndef NESTOR_SERVER_WORKER_POOL_H_
#define NESTOR_SERVER_WORKER_POOL_H_

#include <atomic>
#include <utility>

#include "boost/asio/post.hpp"
#include "boost/asio/thread_pool.hpp"

namespace nestor {

// Bounded: more tasks than `pending_max` are refused, not queued.
class WorkerPool {
 public:
  WorkerPool(int threads, int pending_max) : pool_(threads), pending_max_(pending_max) {}
  ~WorkerPool() { pool_.join(); }

  // False: refused; the task was not taken.
  template <typename Task>
  bool Post(Task task) {
    if (pending_.fetch_add(1) >= pending_max_) {
      pending_.fetch_sub(1);
      return false;
    }
    boost::asio::post(pool_, [this, task = std::move(task)]() mutable {
      task();
      pending_.fetch_sub(1);
    });
    return true;
  }

 private:
  boost::asio::thread_pool pool_;
  std::atomic<int> pending_ = 0;
  const int pending_max_;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_WORKER_POOL_H_
