// The engine: one thread owns the weights' executor, the state of all sequences and the step loop; everybody
// else pushes to bounded queues and never waits on it. Embeddable without the service.
#ifndef NESTOR_ENGINE_SERVE_ENGINE_H_
#define NESTOR_ENGINE_SERVE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/route/router.h"
#include "engine/serve/request.h"
#include "engine/text/tokenizer.h"

namespace nestor {

struct EngineOptions {
  int sequences_max = 32;  // recurrent-state slots: sequences that run at once
  // Bound of recurrent state and KV pages together, set aside at start. Also bounds the context: a sequence
  // that runs alone has all pages and no more.
  int64_t cache_bytes = int64_t{1} << 30;
  int rows_max = 256;                    // rows in one step; at least kPrefillGrid
  int queue_max = 256;                   // requests that wait; one more is refused
  int default_max_output_tokens = 1024;  // for requests that name no limit
  std::function<absl::Time()> clock = absl::Now;
};

// INVALID_ARGUMENT naming the member (as its field) that is out of range, whatever the checkpoint.
absl::Status CheckOptions(const EngineOptions& options);

// A consistent picture of the load, taken after a step.
struct EngineLoad {
  int queued = 0;
  int running = 0;
  int slots_free = 0;
  int slots_total = 0;
  int pages_free = 0;
  int pages_total = 0;
  int64_t steps = 0;
};

// Names a submitted request for Cancel.
using RequestHandle = uint64_t;

class Engine {
 public:
  // Loads the checkpoint folder with its tokenizer, allocates slots and pages, does not start the thread.
  // Errors of CheckOptions and of the loaders; INVALID_ARGUMENT with the member as the field where an option
  // does not suit the checkpoint; RESOURCE_EXHAUSTED where memory does not suffice.
  static absl::StatusOr<std::unique_ptr<Engine>> Load(const std::string& directory,
                                                      const EngineOptions& options);

  ~Engine();  // stops the thread; every request still open ends with UNAVAILABLE

  // Starts the step loop on its own thread. Tests that drive RunOnce by hand do not call it.
  void Start();

  // One turn of the loop: takes new requests and cancels, plans and runs one step, reports. False: there was
  // no work.
  bool RunOnce();

  // Thread-safe, never waits. On success the listener gets exactly one OnOutcome; on error it is never
  // called.
  //   INVALID_ARGUMENT    prompt empty, token out of range, prompt and limits beyond the context or the cache
  //   RESOURCE_EXHAUSTED  queue full (with retry delay)
  //   UNAVAILABLE         draining
  absl::StatusOr<RequestHandle> Submit(GenerationRequest request,
                                       std::shared_ptr<GenerationListener> listener);

  // Thread-safe, never waits. The request ends with CANCELLED within one step, unless it ended before.
  // Unknown or ended handles are ignored.
  void Cancel(RequestHandle handle);

  // From now on Submit answers UNAVAILABLE; running and queued requests go on.
  void StopAdmission();

  EngineLoad load() const;  // thread-safe

  // Immutable after Load.
  const Checkpoint& checkpoint() const;
  const Tokenizer& tokenizer() const;
  const ModelFacts& facts() const;
  // From elastic.json; else "<think>\n" and "\n</think>" where the tokenizer has those two tokens; else
  // absent: the model does not think.
  const std::optional<ThinkingMarkers>& thinking_markers() const;
  // OK, or why chats cannot be rendered: the checkpoint's template is not the one that is supported.
  const absl::Status& chat_status() const;
  std::string_view backend_name() const;
  // What was allocated for recurrent state and KV pages at start.
  int64_t cache_bytes() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_SERVE_ENGINE_H_
