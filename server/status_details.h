// From absl::Status to gRPC, with google.rpc details that clients read by machine, and back.
#ifndef NESTOR_SERVER_STATUS_DETAILS_H_
#define NESTOR_SERVER_STATUS_DETAILS_H_

#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace nestor {

// ErrorInfo.domain of all our errors.
inline constexpr std::string_view kErrorDomain = "nestor";

// Where the engine's field paths begin in requests that hold a Generation.
inline constexpr std::string_view kGenerationField = "generation.";

// The same code and message; details: ErrorInfo (reason), BadRequest (field, put behind `field_prefix`),
// RetryInfo, as the status carries them (engine/base/error_detail.h). Without a reason of its own, an error's
// reason is its code's name.
grpc::Status ToGrpcStatus(const absl::Status& status, std::string_view field_prefix = "");

}  // namespace nestor

#endif  // NESTOR_SERVER_STATUS_DETAILS_H_
