#include "server/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "engine/base/error_detail.h"
#include "server/status_details.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RequestLogTest : public ::testing::Test {
 protected:
  RequestLogTest() : before_(spdlog::default_logger()) {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  }
  ~RequestLogTest() override { spdlog::set_default_logger(before_); }

  std::ostringstream lines_;
  const std::shared_ptr<spdlog::logger> before_;
};

TEST_F(RequestLogTest, OutcomesSayWhatItTook) {
  Outcome outcome;
  outcome.usage.prompt_tokens = 34;
  outcome.usage.thinking.generated_tokens = 45;
  outcome.timings.first_token = absl::Milliseconds(12.5);
  LogOutcome("mine", outcome);
  EXPECT_THAT(lines_.str(), HasSubstr("[info] request mine: OK, prompt 34 tokens, thinking 45"));
  EXPECT_THAT(lines_.str(), HasSubstr("first token 12.5 ms"));
}

TEST_F(RequestLogTest, RefusalsSayTheReasonButNothingOfTheRequest) {
  LogRefusal("mine", InvalidField("text", "expected something else, found 'a secret'"));
  EXPECT_THAT(lines_.str(), HasSubstr("request mine: refused, INVALID_ARGUMENT"));
  EXPECT_THAT(lines_.str(), HasSubstr("field text"));
  LogRefusal("", WithFieldPrefix(InvalidField("budget", "expected"), "generation."));
  EXPECT_THAT(lines_.str(), HasSubstr("request -: refused, INVALID_ARGUMENT"));
  EXPECT_THAT(lines_.str(), HasSubstr("field generation.budget\n"));
  EXPECT_THAT(lines_.str(), Not(HasSubstr("secret")));
}

TEST_F(RequestLogTest, NobodyWritesLinesOfTheirOwn) {
  LogOutcome("x\n[error] forged", {});
  EXPECT_THAT(lines_.str(), HasSubstr("request x\\n[error] forged: OK"));
}

TEST_F(RequestLogTest, FaultsOfOursAreErrors) {
  Outcome outcome;
  outcome.status = absl::InternalError("broken");
  LogOutcome("mine", outcome);
  EXPECT_THAT(lines_.str(), HasSubstr("[error] request mine: INTERNAL"));
}

}  // namespace
}  // namespace nestor
