// Machine-readable details that travel with an absl::Status from the engine to the service, which turns them
// into google.rpc error details (ErrorInfo, BadRequest, RetryInfo).
#ifndef NESTOR_ENGINE_BASE_ERROR_DETAIL_H_
#define NESTOR_ENGINE_BASE_ERROR_DETAIL_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace nestor {

// Why a request was refused, one UPPER_SNAKE_CASE word: "BUDGET_TOO_SMALL". Becomes ErrorInfo.reason.
absl::Status WithReason(absl::Status status, std::string_view reason);
std::optional<std::string> ReasonOf(const absl::Status& status);

// Path of the request field at fault: "budget.max_memory_bytes". Becomes BadRequest.FieldViolation.field.
absl::Status WithField(absl::Status status, std::string_view field);
std::optional<std::string> FieldOf(const absl::Status& status);

// When a retry may succeed, in milliseconds. Becomes RetryInfo.retry_delay.
absl::Status WithRetryDelayMs(absl::Status status, int delay_ms);
std::optional<int> RetryDelayMsOf(const absl::Status& status);

// INVALID_ARGUMENT with the field's path set.
absl::Status InvalidField(std::string_view field, std::string_view message);

}  // namespace nestor

#endif  // NESTOR_ENGINE_BASE_ERROR_DETAIL_H_
