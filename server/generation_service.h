// nestor.v1.GenerationService over the engine.
#ifndef NESTOR_SERVER_GENERATION_SERVICE_H_
#define NESTOR_SERVER_GENERATION_SERVICE_H_

#include <string>

#include "engine/serve/engine.h"
#include "nestor/v1/generation_service.grpc.pb.h"
#include "server/call_registry.h"
#include "server/worker_pool.h"

namespace nestor {

// Thread-safe. The engine must be started and outlive the service.
class GenerationService : public v1::GenerationService::CallbackService {
 public:
  GenerationService(Engine& engine, std::string model_name, WorkerPool& workers, CallRegistry& calls)
      : engine_(engine), model_name_(std::move(model_name)), workers_(workers), calls_(calls) {}

  grpc::ServerUnaryReactor* Generate(grpc::CallbackServerContext* context, const v1::GenerateRequest* request,
                                     v1::GenerateResponse* response) override;
  grpc::ServerWriteReactor<v1::GenerateStreamResponse>* GenerateStream(
      grpc::CallbackServerContext* context, const v1::GenerateStreamRequest* request) override;

 private:
  std::shared_ptr<GenerationCall> MakeCall(const grpc::CallbackServerContext& context,
                                           const v1::Generation& generation, GenerationSink& sink);
  // Hands the call to a worker, or ends it at once where too many wait.
  void Launch(const std::shared_ptr<GenerationCall>& call, GenerationSink& sink);

  Engine& engine_;
  const std::string model_name_;
  WorkerPool& workers_;
  CallRegistry& calls_;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_GENERATION_SERVICE_H_
