#include "server/status_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "engine/base/error_detail.h"
#include "google/rpc/status.pb.h"
#include "server/violations.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename Detail>
std::optional<Detail> Find(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  Detail found;
  for (const google::protobuf::Any& detail : details.details()) {
    if (detail.UnpackTo(&found)) return found;
  }
  return std::nullopt;
}

TEST(StatusDetails, SuccessHasNone) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpcStatus(absl::OkStatus()).error_details(), "");
}

TEST(StatusDetails, CodeAndMessageStayAndTheCodeIsTheReason) {
  const grpc::Status status = ToGrpcStatus(absl::UnavailableError("draining"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "draining");
  EXPECT_EQ(Find<google::rpc::ErrorInfo>(status)->reason(), "UNAVAILABLE");
  EXPECT_EQ(Find<google::rpc::ErrorInfo>(status)->domain(), "nestor");
  EXPECT_FALSE(Find<google::rpc::BadRequest>(status).has_value());
  EXPECT_FALSE(Find<google::rpc::RetryInfo>(status).has_value());
}

TEST(StatusDetails, ReasonFieldAndDelayBecomeDetails) {
  absl::Status status = WithReason(absl::ResourceExhaustedError("full"), "QUEUE_FULL");
  status = WithRetryDelayMs(WithField(status, "priority"), 1250);
  const grpc::Status result = ToGrpcStatus(status);
  EXPECT_EQ(Find<google::rpc::ErrorInfo>(result)->reason(), "QUEUE_FULL");
  EXPECT_EQ(Find<google::rpc::BadRequest>(result)->field_violations(0).field(), "priority");
  EXPECT_EQ(Find<google::rpc::RetryInfo>(result)->retry_delay().seconds(), 1);
  EXPECT_EQ(Find<google::rpc::RetryInfo>(result)->retry_delay().nanos(), 250'000'000);
}

TEST(StatusDetails, PrefixesGoBeforeEveryField) {
  Violations violations;
  violations.Add("a", "expected 1, found 2");
  violations.Add("b", "expected 3, found 4");
  const grpc::Status several = ToGrpcStatus(WithFieldPrefix(violations.ToStatus(), "generation."));
  EXPECT_EQ(several.error_message(), "a: expected 1, found 2; b: expected 3, found 4");
  const auto bad_request = *Find<google::rpc::BadRequest>(several);
  ASSERT_EQ(bad_request.field_violations_size(), 2);
  EXPECT_EQ(bad_request.field_violations(0).field(), "generation.a");
  EXPECT_EQ(bad_request.field_violations(1).field(), "generation.b");
  EXPECT_EQ(bad_request.field_violations(1).description(), "b: expected 3, found 4");

  EXPECT_THAT(FieldsOf(WithFieldPrefix(violations.ToStatus(), "x.")), ElementsAre("x.a", "x.b"));
  EXPECT_THAT(FieldsOf(absl::InternalError("x")), IsEmpty());

  const grpc::Status one = ToGrpcStatus(WithFieldPrefix(InvalidField("c", "expected"), "generation."));
  EXPECT_EQ(Find<google::rpc::BadRequest>(one)->field_violations(0).field(), "generation.c");
  EXPECT_EQ(WithFieldPrefix(absl::InternalError("x"), "generation."), absl::InternalError("x"));
}

TEST(Violations, AreNoneUntilOneIsAddedAndNeverMoreThanClientsCanTake) {
  Violations violations;
  EXPECT_TRUE(violations.ToStatus().ok());
  for (int i = 0; i < 10'000; ++i) violations.Add("chat.messages[0].role", "expected a role, found 0");
  const grpc::Status status = ToGrpcStatus(violations.ToStatus());
  EXPECT_EQ(Find<google::rpc::BadRequest>(status)->field_violations_size(), 10);
  EXPECT_LT(status.error_message().size() + status.error_details().size() * 4 / 3, 8192u);
}

TEST(Violations, ExcerptsAreShortAndOfWholeCharacters) {
  EXPECT_EQ(Excerpt("short"), "short");
  std::string text = "x";
  for (int i = 0; i < 100; ++i) text += "é";
  std::string expected = "x";
  for (int i = 0; i < 29; ++i) expected += "é";
  EXPECT_EQ(Excerpt(text), expected + "…");
}

}  // namespace
}  // namespace nestor
