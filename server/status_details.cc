#include "server/status_details.h"

#include <algorithm>
#include <string>

#include "engine/base/error_detail.h"
#include "engine/base/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace nestor {
namespace {

google::rpc::Status ToProto(const absl::Status& status, std::string_view field_prefix) {
  google::rpc::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));

  google::rpc::ErrorInfo info;
  info.set_domain(std::string(kErrorDomain));
  info.set_reason(ReasonOf(status).value_or(absl::StatusCodeToString(status.code())));
  proto.add_details()->PackFrom(info);

  if (const auto field = FieldOf(status)) {
    google::rpc::BadRequest bad_request;
    auto* const violation = bad_request.add_field_violations();
    violation->set_field(StrCat(field_prefix, *field));
    violation->set_description(std::string(status.message()));
    proto.add_details()->PackFrom(bad_request);
  }
  if (const auto delay_ms = RetryDelayMsOf(status)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(*delay_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(*delay_ms % 1000 * 1'000'000);
    proto.add_details()->PackFrom(retry);
  }
  return proto;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status, std::string_view field_prefix) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      ToProto(status, field_prefix).SerializeAsString());
}

}  // namespace nestor
