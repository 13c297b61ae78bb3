#include "server/status_details.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "engine/base/error_detail.h"
#include "engine/base/str_cat.h"
#include "google/rpc/status.pb.h"

namespace nestor {
namespace {

constexpr char kBadRequestUrl[] = "type.googleapis.com/google.rpc.BadRequest";

// Empty where the status names no field.
google::rpc::BadRequest BadRequestOf(const absl::Status& status) {
  google::rpc::BadRequest bad_request;
  if (const auto payload = status.GetPayload(kBadRequestUrl)) {
    bad_request.ParseFromString(std::string(*payload));
  } else if (const auto field = FieldOf(status)) {
    auto* const violation = bad_request.add_field_violations();
    violation->set_field(*field);
    violation->set_description(std::string(status.message()));
  }
  return bad_request;
}

google::rpc::Status ToProto(const absl::Status& status) {
  google::rpc::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));

  google::rpc::ErrorInfo info;
  info.set_domain(std::string(kErrorDomain));
  info.set_reason(ReasonOf(status).value_or(absl::StatusCodeToString(status.code())));
  proto.add_details()->PackFrom(info);

  const google::rpc::BadRequest bad_request = BadRequestOf(status);
  if (!bad_request.field_violations().empty()) proto.add_details()->PackFrom(bad_request);

  if (const auto delay_ms = RetryDelayMsOf(status)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(*delay_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(*delay_ms % 1000 * 1'000'000);
    proto.add_details()->PackFrom(retry);
  }
  return proto;
}

}  // namespace

std::vector<std::string> FieldsOf(const absl::Status& status) {
  const google::rpc::BadRequest bad_request = BadRequestOf(status);
  std::vector<std::string> fields;
  for (const auto& violation : bad_request.field_violations()) fields.push_back(violation.field());
  return fields;
}

absl::Status WithBadRequest(absl::Status status, const google::rpc::BadRequest& bad_request) {
  status.SetPayload(kBadRequestUrl, absl::Cord(bad_request.SerializeAsString()));
  return status;
}

absl::Status WithFieldPrefix(absl::Status status, std::string_view prefix) {
  google::rpc::BadRequest bad_request = BadRequestOf(status);
  if (bad_request.field_violations().empty()) return status;
  for (auto& violation : *bad_request.mutable_field_violations()) {
    violation.set_field(StrCat(prefix, violation.field()));
  }
  return WithBadRequest(std::move(status), bad_request);
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      ToProto(status).SerializeAsString());
}

}  // namespace nestor
