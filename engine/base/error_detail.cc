#include "engine/base/error_detail.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

constexpr std::string_view kReasonUrl = "nestor/reason";
constexpr std::string_view kFieldUrl = "nestor/field";
constexpr std::string_view kRetryDelayMsUrl = "nestor/retry_delay_ms";

absl::Status WithPayload(absl::Status status, std::string_view url, std::string_view payload) {
  status.SetPayload(ToAbsl(url), absl::Cord(ToAbsl(payload)));
  return status;
}

std::optional<std::string> PayloadOf(const absl::Status& status, std::string_view url) {
  const auto payload = status.GetPayload(ToAbsl(url));
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace

absl::Status WithReason(absl::Status status, std::string_view reason) {
  return WithPayload(std::move(status), kReasonUrl, reason);
}
std::optional<std::string> ReasonOf(const absl::Status& status) { return PayloadOf(status, kReasonUrl); }

absl::Status WithField(absl::Status status, std::string_view field) {
  return WithPayload(std::move(status), kFieldUrl, field);
}
std::optional<std::string> FieldOf(const absl::Status& status) { return PayloadOf(status, kFieldUrl); }

absl::Status WithRetryDelayMs(absl::Status status, int delay_ms) {
  return WithPayload(std::move(status), kRetryDelayMsUrl, StrCat(delay_ms));
}
std::optional<int> RetryDelayMsOf(const absl::Status& status) {
  int delay_ms = 0;
  const auto payload = PayloadOf(status, kRetryDelayMsUrl);
  if (!payload.has_value() || !absl::SimpleAtoi(*payload, &delay_ms)) return std::nullopt;
  return delay_ms;
}

absl::Status InvalidField(std::string_view field, std::string_view message) {
  return WithField(absl::InvalidArgumentError(StrCat(field, ": ", message)), field);
}

}  // namespace nestor
