// nestor.v1.ModelService: one model, described once.
#ifndef NESTOR_SERVER_MODEL_SERVICE_H_
#define NESTOR_SERVER_MODEL_SERVICE_H_

#include <utility>

#include "nestor/v1/model_service.grpc.pb.h"

namespace nestor {

// Thread-safe.
class ModelService : public v1::ModelService::CallbackService {
 public:
  explicit ModelService(v1::Model model) : model_(std::move(model)) {}

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context, const v1::GetModelRequest* request,
                                     v1::GetModelResponse* response) override;

 private:
  const v1::Model model_;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_MODEL_SERVICE_H_
