// The transport of GenerateStream.
#ifndef NESTOR_SERVER_STREAM_REACTOR_H_
#define NESTOR_SERVER_STREAM_REACTOR_H_

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "nestor/v1/generation_service.pb.h"
#include "server/call_registry.h"
#include "server/generation_call.h"

namespace nestor {

// Writes one message at a time. Deltas that come while a write is under way wait, joined with others of their
// phase, so that a slow client holds up nobody and costs no more memory than its own output. Deletes itself
// when gRPC is done with it, which is never before OnEnd: until then the call may use it.
class StreamReactor : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public GenerationSink {
 public:
  explicit StreamReactor(CallRegistry& calls) : calls_(calls) {}

  void Attach(std::shared_ptr<GenerationCall> call);
  const std::shared_ptr<GenerationCall>& call() const { return call_; }

  // GenerationSink
  void OnStart(v1::GenerationStart start) override;
  void OnDelta(v1::GenerationDelta delta) override;
  void OnEnd(const absl::Status& status, v1::GenerationEnd end) override;

  // grpc::ServerWriteReactor
  void OnWriteDone(bool ok) override;
  void OnCancel() override { call_->Cancel(); }
  void OnDone() override;

 private:
  // What to do next; at most one action is ever under way.
  void Proceed();

  CallRegistry& calls_;
  std::shared_ptr<GenerationCall> call_;

  std::mutex mutex_;  // guards all below but current_
  std::deque<v1::GenerateStreamResponse> pending_;
  bool writing_ = false;
  bool broken_ = false;  // a write failed: no further one will succeed
  std::optional<grpc::Status> final_status_;
  grpc::ByteBuffer current_;  // being written
};

}  // namespace nestor

#endif  // NESTOR_SERVER_STREAM_REACTOR_H_
