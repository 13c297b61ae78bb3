// One generation from request to outcome, whatever the transport: the part that Generate and GenerateStream
// share.
#ifndef NESTOR_SERVER_GENERATION_CALL_H_
#define NESTOR_SERVER_GENERATION_CALL_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/serve/engine.h"
#include "engine/serve/request.h"
#include "nestor/v1/generation.pb.h"
#include "server/prompt_conversion.h"

namespace nestor {

// What all calls of a server share. The engine must be started.
struct GenerationContext {
  GenerationContext(Engine& engine_to_use, std::string name);

  Engine& engine;
  const std::string model_name;
  const PromptLimits prompt_limits;
};

// What a transport does with the output. Called from a worker or the engine's thread, one call at a time, in
// the order OnStart, OnDelta…, OnEnd; OnEnd exactly once and last, after which the sink may be gone. A
// request that is refused gets OnEnd alone. Must not block.
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
  // `context` must outlive the call, `sink` be valid until OnEnd.
  GenerationCall(const GenerationContext& context, absl::Time deadline, GenerationSink& sink);

  // Checks, tokenizes, plans and submits; an error in place of a generation is the call's end. May take as
  // long as tokenizing does: not for a thread that must not block. Once, unless Refuse is called instead.
  void Run(const absl::StatusOr<v1::Generation>& generation);

  // Ends a call that is not run.
  void Refuse(const absl::Status& status);

  // The client does not want it any more: ends with CANCELLED, or DEADLINE_EXCEEDED where that is why. From
  // any thread, any number of times, also before Run and after the end.
  void Cancel() { End(absl::CancelledError("the request was cancelled")); }

  // The same for a server that stops: ends with UNAVAILABLE.
  void Abandon();

  // GenerationListener, on the engine's thread.
  void OnDelta(Delta delta) override;
  void OnOutcome(Outcome outcome) override;

 private:
  absl::Status Accept(const v1::Generation& generation);
  absl::StatusOr<GenerationRequest> Prepare(const v1::Generation& generation) const;
  // Submits unless the call was ended meanwhile.
  absl::Status Submit(GenerationRequest request);
  // Ends the call with `status` unless it ends by itself first; the first of several holds.
  void End(absl::Status status);
  // The status of a request that the engine ended for `status`.
  absl::Status Explain(const absl::Status& status);
  // Tells the sink of the start, once: the worker after the engine took the request, or the engine's thread,
  // whose first output may come before the worker gets to it.
  void Start();

  // The context belongs to the server, which may go as soon as the sink has heard of the end; the engine
  // stays.
  const GenerationContext& context_;
  Engine& engine_;
  const absl::Time deadline_;
  const absl::Time arrival_ = absl::Now();
  GenerationSink& sink_;

  // Set before Submit.
  bool with_tokens_ = false;
  bool thinks_ = false;
  std::string request_id_;

  std::mutex start_mutex_;  // held while the sink hears of the start, so that nothing overtakes it
  std::optional<v1::GenerationStart> start_;

  std::mutex mutex_;    // guards all below
  absl::Status ended_;  // not OK: by whom, before the engine was done
  std::optional<RequestHandle> handle_;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_GENERATION_CALL_H_
