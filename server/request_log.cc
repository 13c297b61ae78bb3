#include "server/request_log.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "engine/base/error_detail.h"
#include "server/status_details.h"
#include "spdlog/spdlog.h"

namespace nestor {
namespace {

// The client chose the text: it must not begin a line of its own, nor fill the log where it was refused for
// its length.
std::string Printable(const std::string& text) {
  constexpr size_t kBytesMax = 256;
  return text.empty() ? "-" : absl::CHexEscape(text.substr(0, kBytesMax));
}

double Milliseconds(const std::optional<absl::Duration>& duration) {
  return absl::ToDoubleMilliseconds(duration.value_or(absl::ZeroDuration()));
}

// A fault of ours stands out.
spdlog::level::level_enum LevelOf(const absl::Status& status) {
  return absl::IsInternal(status) ? spdlog::level::err : spdlog::level::info;
}

}  // namespace

void LogRefusal(const std::string& request_id, const absl::Status& status) {
  // Without the message, which may repeat parts of the request.
  const std::string code = absl::StatusCodeToString(status.code());
  spdlog::log(LevelOf(status), "request {}: refused, {}, reason {}, field {}", Printable(request_id), code,
              ReasonOf(status).value_or(code), Printable(absl::StrJoin(FieldsOf(status), ", ")));
}

void LogOutcome(const std::string& request_id, const Outcome& outcome) {
  const Usage& usage = outcome.usage;
  spdlog::log(
      LevelOf(outcome.status),
      "request {}: {}, prompt {} tokens, thinking {}, answer {}, preempted {}; queue {:.1f} ms, first "
      "token {:.1f} ms, total {:.1f} ms",
      Printable(request_id), absl::StatusCodeToString(outcome.status.code()), usage.prompt_tokens,
      usage.thinking.generated_tokens, usage.answer.generated_tokens, usage.preemptions,
      Milliseconds(outcome.timings.queue), Milliseconds(outcome.timings.first_token),
      Milliseconds(outcome.timings.total));
}

}  // namespace nestor
