#include "server/generation_service.h"

#include <utility>

#include "engine/base/error_detail.h"
#include "server/stream_reactor.h"
#include "server/unary_reactor.h"

namespace nestor {

grpc::ServerUnaryReactor* GenerationService::Generate(grpc::CallbackServerContext* context,
                                                      const v1::GenerateRequest* request,
                                                      v1::GenerateResponse* response) {
  auto* const reactor = new UnaryReactor(*response, calls_);
  reactor->Attach(MakeCall(*context, request->generation(), *reactor));
  Launch(reactor->call(), *reactor);
  return reactor;
}

grpc::ServerWriteReactor<v1::GenerateStreamResponse>* GenerationService::GenerateStream(
    grpc::CallbackServerContext* context, const v1::GenerateStreamRequest* request) {
  auto* const reactor = new StreamReactor(calls_);
  reactor->Attach(MakeCall(*context, request->generation(), *reactor));
  Launch(reactor->call(), *reactor);
  return reactor;
}

std::shared_ptr<GenerationCall> GenerationService::MakeCall(const grpc::CallbackServerContext& context,
                                                            const v1::Generation& generation,
                                                            GenerationSink& sink) {
  return std::make_shared<GenerationCall>(engine_, model_name_, generation,
                                          absl::FromChrono(context.deadline()), sink);
}

void GenerationService::Launch(const std::shared_ptr<GenerationCall>& call, GenerationSink& sink) {
  constexpr int kRetryDelayMs = 1000;
  if (workers_.Post([call] { call->Run(); })) return;
  const absl::Status refusal =
      WithReason(absl::ResourceExhaustedError("too many requests are being read"), "TOO_MANY_PENDING");
  sink.OnEnd(WithRetryDelayMs(refusal, kRetryDelayMs), {});
}

}  // namespace nestor
