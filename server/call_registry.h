// The calls that are open, so that a drain can wait for them and end what is left.
#ifndef NESTOR_SERVER_CALL_REGISTRY_H_
#define NESTOR_SERVER_CALL_REGISTRY_H_

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "server/generation_call.h"

namespace nestor {

// Thread-safe.
class CallRegistry {
 public:
  void Add(std::shared_ptr<GenerationCall> call) {
    std::lock_guard lock(mutex_);
    calls_.insert(std::move(call));
  }

  void Remove(const std::shared_ptr<GenerationCall>& call) {
    std::lock_guard lock(mutex_);
    calls_.erase(call);
    if (calls_.empty()) none_.notify_all();
  }

  // True: none is open. False: the time is up (at most a day: clocks overflow beyond some centuries).
  bool AwaitNone(absl::Duration timeout) {
    std::unique_lock lock(mutex_);
    return none_.wait_for(lock, absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24))),
                          [this] { return calls_.empty(); });
  }

  void AbandonAll() {
    std::lock_guard lock(mutex_);
    for (const std::shared_ptr<GenerationCall>& call : calls_) call->Abandon();
  }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable none_;
  absl::flat_hash_set<std::shared_ptr<GenerationCall>> calls_;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_CALL_REGISTRY_H_
