// The transport of Generate: collects everything into one response.
#ifndef NESTOR_SERVER_UNARY_REACTOR_H_
#define NESTOR_SERVER_UNARY_REACTOR_H_

#include <memory>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "nestor/v1/generation_service.pb.h"
#include "server/call_registry.h"
#include "server/generation_call.h"

namespace nestor {

// Deletes itself when gRPC is done with it, which is never before OnEnd: until then the call may use it.
class UnaryReactor : public grpc::ServerUnaryReactor, public GenerationSink {
 public:
  UnaryReactor(grpc::ByteBuffer& bytes, CallRegistry& calls) : bytes_(bytes), calls_(calls) {}

  void Attach(std::shared_ptr<GenerationCall> call);
  const std::shared_ptr<GenerationCall>& call() const { return call_; }

  // GenerationSink
  void OnStart(v1::GenerationStart start) override;
  void OnDelta(v1::GenerationDelta delta) override;
  void OnEnd(const absl::Status& status, v1::GenerationEnd end) override;

  // grpc::ServerUnaryReactor
  void OnCancel() override { call_->Cancel(); }
  void OnDone() override;

 private:
  grpc::ByteBuffer& bytes_;  // what is sent
  v1::GenerateResponse response_;
  CallRegistry& calls_;
  std::shared_ptr<GenerationCall> call_;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_UNARY_REACTOR_H_
