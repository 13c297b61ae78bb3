// One generation from request to outcome, whatever the transport: the part that Generate and GenerateStream
// share.
#ifndef NESTOR_SERVER_GENERATION_CALL_H_
#define NESTOR_SERVER_GENERATION_CALL_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/serve/engine.h"
#include "engine/serve/request.h"
#include "nestor/v1/generation.pb.h"

namespace nestor {

// What a transport does with the output. Called from a worker or the engine's thread, one call at a time, in
// the order OnStart, OnDelta…, OnEnd; OnEnd exactly once and last, after which the sink may be gone. Must not
// block.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  virtual void OnStart(v1::GenerationStart start) = 0;
  virtual void OnDelta(v1::GenerationDelta delta) = 0;
  // `end` is meaningful where `status` is OK.
  virtual void OnEnd(const absl::Status& status, v1::GenerationEnd end) = 0;
};

class GenerationCall : public GenerationListener, public std::enable_shared_from_this<GenerationCall> {
 public:
  // `generation` and `sink` must stay valid until OnEnd.
  GenerationCall(Engine& engine, const std::string& model_name, const v1::Generation& generation,
                 absl::Time deadline, GenerationSink& sink);

  // Checks, tokenizes, plans and submits. May take as long as tokenizing does: not for a thread that must not
  // block.
  void Run();

  // The client does not want it any more. From any thread, any number of times, also before Run and after the
  // end.
  void Cancel();

  // GenerationListener, on the engine's thread.
  void OnDelta(Delta delta) override;
  void OnOutcome(Outcome outcome) override;

 private:
  absl::StatusOr<GenerationRequest> Prepare() const;
  // Submits unless the call was cancelled meanwhile.
  absl::Status Submit(GenerationRequest request) ABSL_LOCKS_EXCLUDED(mutex_);

  Engine& engine_;
  const std::string& model_name_;
  const v1::Generation& generation_;
  const absl::Time deadline_;
  GenerationSink& sink_;
  const bool with_tokens_;
  bool thinks_ = false;  // set before Submit

  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<RequestHandle> handle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nestor

#endif  // NESTOR_SERVER_GENERATION_CALL_H_
