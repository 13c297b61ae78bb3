// nestor.v1.GenerationService over the engine.
#ifndef NESTOR_SERVER_GENERATION_SERVICE_H_
#define NESTOR_SERVER_GENERATION_SERVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "engine/serve/engine.h"
#include "nestor/v1/generation_service.grpc.pb.h"
#include "server/call_registry.h"
#include "server/generation_call.h"
#include "server/worker_pool.h"

namespace nestor {

// Both methods take and give bytes (see raw_message.h).
using RawGenerationService = v1::GenerationService::WithRawCallbackMethod_Generate<
    v1::GenerationService::WithRawCallbackMethod_GenerateStream<v1::GenerationService::Service>>;

// Thread-safe. The engine must be started and outlive the service.
class GenerationService : public RawGenerationService {
 public:
  GenerationService(Engine& engine, std::string model_name, WorkerPool& workers, CallRegistry& calls)
      : context_(engine, std::move(model_name)), workers_(workers), calls_(calls) {}

  grpc::ServerUnaryReactor* Generate(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerateStream(grpc::CallbackServerContext* context,
                                                             const grpc::ByteBuffer* request) override;

 private:
  std::shared_ptr<GenerationCall> MakeCall(const grpc::CallbackServerContext& context, GenerationSink& sink);
  // Hands the call to a worker, or ends it at once where too many wait. `request` must stay valid until the
  // call's end.
  template <typename Request>
  void Launch(const std::shared_ptr<GenerationCall>& call, const grpc::ByteBuffer& request);

  const GenerationContext context_;
  WorkerPool& workers_;
  CallRegistry& calls_;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_GENERATION_SERVICE_H_
