#include "server/violations.h"

#include <string>

#include "engine/base/str_cat.h"
#include "engine/text/utf8.h"
#include "server/status_details.h"

namespace nestor {

void Violations::Add(std::string_view field, std::string_view message) {
  constexpr int kViolationsMax = 10;
  if (bad_request_.field_violations_size() == kViolationsMax) return;
  auto* const violation = bad_request_.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(StrCat(field, ": ", message));
}

absl::Status Violations::ToStatus() const {
  if (bad_request_.field_violations().empty()) return absl::OkStatus();
  std::string message;
  for (const auto& violation : bad_request_.field_violations()) {
    StrAppend(&message, message.empty() ? "" : "; ", violation.description());
  }
  return WithBadRequest(absl::InvalidArgumentError(message), bad_request_);
}

std::string Excerpt(std::string_view text) {
  constexpr size_t kBytesMax = 60;
  if (text.size() <= kBytesMax) return std::string(text);
  const std::string_view head = text.substr(0, kBytesMax);
  return StrCat(head.substr(0, CompleteUtf8Length(head)), "…");
}

}  // namespace nestor
