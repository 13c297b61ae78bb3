// The calls that are open, so that a drain can wait for them and cancel what is left.
#ifndef NESTOR_SERVER_CALL_REGISTRY_H_
#define NESTOR_SERVER_CALL_REGISTRY_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/generation_call.h"

namespace nestor {

// Thread-safe.
class CallRegistry {
 public:
  void Add(std::shared_ptr<GenerationCall> call) {
    absl::MutexLock lock(&mutex_);
    calls_.insert(std::move(call));
  }

  void Remove(const std::shared_ptr<GenerationCall>& call) {
    absl::MutexLock lock(&mutex_);
    calls_.erase(call);
  }

  // True: none is open. False: the time is up.
  bool AwaitNone(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(this, &CallRegistry::IsEmpty), timeout);
  }

  void CancelAll() {
    absl::MutexLock lock(&mutex_);
    for (const std::shared_ptr<GenerationCall>& call : calls_) call->Cancel();
  }

 private:
  bool IsEmpty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); }

  absl::Mutex mutex_;
  absl::flat_hash_set<std::shared_ptr<GenerationCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nestor

#endif  // NESTOR_SERVER_CALL_REGISTRY_H_
