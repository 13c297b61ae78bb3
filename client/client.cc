#include "client/client.h"

#include <utility>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/create_channel.h"

namespace nestor {
namespace {

// What the server did not take or, stopping, could not finish is repeated elsewhere; a stream that has begun
// is not.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "nestor.v1.GenerationService"}, {"service": "nestor.v1.ModelService"}],
    "retryPolicy": {
      "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})";

// Keeps the details as payloads, each under its type.
absl::Status ToStatus(const grpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (result.ok() || !details.ParseFromString(status.error_details())) return result;
  for (const google::protobuf::Any& detail : details.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

template <typename Detail>
std::optional<Detail> FindDetail(const absl::Status& status) {
  const auto payload = status.GetPayload("type.googleapis.com/" + Detail::descriptor()->full_name());
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

ErrorDetails DetailsOf(const absl::Status& status) {
  ErrorDetails details;
  if (const auto info = FindDetail<google::rpc::ErrorInfo>(status)) details.reason = info->reason();
  if (const auto bad_request = FindDetail<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad_request->field_violations()) details.fields.push_back(violation.field());
    if (!details.fields.empty()) details.field = details.fields.front();
  }
  if (const auto retry = FindDetail<google::rpc::RetryInfo>(status)) {
    details.retry_delay =
        absl::Seconds(retry->retry_delay().seconds()) + absl::Nanoseconds(retry->retry_delay().nanos());
  }
  return details;
}

// Sets up the context of a call and makes it known to its control while it runs.
class CallControl::Scope {
 public:
  explicit Scope(const CallOptions& options) : control_(options.control) {
    if (options.timeout != absl::InfiniteDuration()) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + options.timeout));
    }
    if (control_ == nullptr) return;
    std::lock_guard lock(control_->mutex_);
    control_->context_ = &context_;
    if (control_->cancelled_) context_.TryCancel();
  }

  ~Scope() {
    if (control_ == nullptr) return;
    std::lock_guard lock(control_->mutex_);
    control_->context_ = nullptr;
  }

  grpc::ClientContext* context() { return &context_; }

 private:
  CallControl* const control_;
  grpc::ClientContext context_;
};

void CallControl::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

Client Client::Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(-1);  // an answer with log-probabilities may exceed the usual 4 MiB
  return Client(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

Client::Client(std::shared_ptr<grpc::Channel> channel)
    : generation_(v1::GenerationService::NewStub(channel)), models_(v1::ModelService::NewStub(channel)) {}

absl::StatusOr<v1::GenerateResponse> Client::Generate(const v1::Generation& generation,
                                                      const CallOptions& options) {
  CallControl::Scope scope(options);
  v1::GenerateRequest request;
  *request.mutable_generation() = generation;
  v1::GenerateResponse response;
  const absl::Status status = ToStatus(generation_->Generate(scope.context(), request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::Status Client::GenerateStream(const v1::Generation& generation,
                                    const std::function<void(const v1::GenerateStreamResponse&)>& on_message,
                                    const CallOptions& options) {
  CallControl::Scope scope(options);
  v1::GenerateStreamRequest request;
  *request.mutable_generation() = generation;
  const auto reader = generation_->GenerateStream(scope.context(), request);
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) on_message(response);
  return ToStatus(reader->Finish());
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels(const CallOptions& options) {
  CallControl::Scope scope(options);
  v1::ListModelsResponse response;
  const absl::Status status = ToStatus(models_->ListModels(scope.context(), {}, &response));
  if (!status.ok()) return status;
  return response;
}

}  // namespace nestor
