// Tells ThreadSanitizer what absl::Mutex does. Debian's Abseil is built without the sanitizer, so what a
// mutex orders is invisible to it and every variable under a lock looks like a race. This library is loaded
// in front of Abseil (scripts/tsan/run.sh) and marks the locks, then calls the real ones. Races on what no
// lock protects are still found.
//
// Only the operations Nestor uses are here; another one (readers, TryLock, LockWhen, CondVar) shows up as
// false reports around it, and wants the same three lines.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

// Weak: programs without the sanitizer (ctest, python) are started with this library too.
extern "C" __attribute__((weak)) void __tsan_acquire(void* address);
extern "C" __attribute__((weak)) void __tsan_release(void* address);

namespace {

template <typename Function>
Function* Next(const char* symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "scripts/tsan: Abseil has no %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

void Acquired(void* mutex) {
  if (__tsan_acquire != nullptr) __tsan_acquire(mutex);
}

void Releasing(void* mutex) {
  if (__tsan_release != nullptr) __tsan_release(mutex);
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const next = Next<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  next(this);
  Acquired(this);
}

void Mutex::Unlock() {
  static auto* const next = Next<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  Releasing(this);
  next(this);
}

void Mutex::Await(const Condition& condition) {
  static auto* const next =
      Next<void(Mutex*, const Condition&)>("_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  Releasing(this);
  next(this, condition);
  Acquired(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const next = Next<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  Releasing(this);
  const bool met = next(this, condition, timeout);
  Acquired(this);
  return met;
}

ABSL_NAMESPACE_END
}  // namespace absl
