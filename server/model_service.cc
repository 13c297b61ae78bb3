#include "server/model_service.h"

#include "engine/base/error_detail.h"
#include "engine/base/str_cat.h"
#include "server/status_details.h"

namespace nestor {

grpc::ServerUnaryReactor* ModelService::ListModels(grpc::CallbackServerContext* context,
                                                   const v1::ListModelsRequest* /*request*/,
                                                   v1::ListModelsResponse* response) {
  *response->add_models() = model_;
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* ModelService::GetModel(grpc::CallbackServerContext* context,
                                                 const v1::GetModelRequest* request,
                                                 v1::GetModelResponse* response) {
  absl::Status status;
  if (request->name().empty()) {
    status = InvalidField("name", "expected the name of a model, found nothing");
  } else if (request->name() != model_.name()) {
    status =
        absl::NotFoundError(StrCat("name: expected '", model_.name(), "', found '", request->name(), "'"));
  } else {
    *response->mutable_model() = model_;
  }
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace nestor
