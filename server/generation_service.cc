#include "server/generation_service.h"

#include "engine/base/error_detail.h"
#include "server/raw_message.h"
#include "server/stream_reactor.h"
#include "server/unary_reactor.h"

namespace nestor {

grpc::ServerUnaryReactor* GenerationService::Generate(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  auto* const reactor = new UnaryReactor(*response, calls_);
  reactor->Attach(MakeCall(*context, *reactor));
  Launch<v1::GenerateRequest>(reactor->call(), *request);
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerationService::GenerateStream(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  auto* const reactor = new StreamReactor(calls_);
  reactor->Attach(MakeCall(*context, *reactor));
  Launch<v1::GenerateStreamRequest>(reactor->call(), *request);
  return reactor;
}

std::shared_ptr<GenerationCall> GenerationService::MakeCall(const grpc::CallbackServerContext& context,
                                                            GenerationSink& sink) {
  return std::make_shared<GenerationCall>(context_, absl::FromChrono(context.deadline()), sink);
}

template <typename Request>
void GenerationService::Launch(const std::shared_ptr<GenerationCall>& call, const grpc::ByteBuffer& request) {
  constexpr int kRetryDelayMs = 1000;
  if (workers_.Post([call, &request] { call->Run(ReadGeneration<Request>(request)); })) return;
  const absl::Status refusal =
      WithReason(absl::ResourceExhaustedError("too many requests are being read"), "TOO_MANY_PENDING");
  call->Refuse(WithRetryDelayMs(refusal, kRetryDelayMs));
}

}  // namespace nestor
