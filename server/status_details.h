// From absl::Status to gRPC, with google.rpc details that clients read by machine.
#ifndef NESTOR_SERVER_STATUS_DETAILS_H_
#define NESTOR_SERVER_STATUS_DETAILS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "google/rpc/error_details.pb.h"
#include "grpcpp/support/status.h"

namespace nestor {

// ErrorInfo.domain of all our errors.
inline constexpr std::string_view kErrorDomain = "nestor";

// Attaches several violations at once, in place of the one field of engine/base/error_detail.h.
absl::Status WithBadRequest(absl::Status status, const google::rpc::BadRequest& bad_request);

// The paths of all fields that the status names.
std::vector<std::string> FieldsOf(const absl::Status& status);

// Puts `prefix` before the path of every field the status names.
absl::Status WithFieldPrefix(absl::Status status, std::string_view prefix);

// The same code and message; details: ErrorInfo (reason), BadRequest (fields) and RetryInfo, as the status
// carries them. Without a reason of its own, an error's reason is its code's name.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace nestor

#endif  // NESTOR_SERVER_STATUS_DETAILS_H_
