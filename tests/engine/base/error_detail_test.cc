#include "engine/base/error_detail.h"

#include "gtest/gtest.h"

namespace nestor {
namespace {

TEST(ErrorDetailTest, DetailsTravelWithTheStatus) {
  absl::Status status = WithReason(absl::ResourceExhaustedError("full"), "QUEUE_FULL");
  status = WithRetryDelayMs(WithField(std::move(status), "budget.max_memory_bytes"), 250);
  const absl::Status copy = status;
  EXPECT_EQ(copy.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(copy.message(), "full");
  EXPECT_EQ(ReasonOf(copy), "QUEUE_FULL");
  EXPECT_EQ(FieldOf(copy), "budget.max_memory_bytes");
  EXPECT_EQ(RetryDelayMsOf(copy), 250);
}

TEST(ErrorDetailTest, AbsentWhereNobodySetThem) {
  const absl::Status status = absl::InternalError("broken");
  EXPECT_EQ(ReasonOf(status), std::nullopt);
  EXPECT_EQ(FieldOf(status), std::nullopt);
  EXPECT_EQ(RetryDelayMsOf(status), std::nullopt);
}

TEST(ErrorDetailTest, TheLastValueCounts) {
  EXPECT_EQ(ReasonOf(WithReason(WithReason(absl::InternalError(""), "A"), "B")), "B");
}

TEST(ErrorDetailTest, AnOkStatusCarriesNothing) {
  EXPECT_EQ(ReasonOf(WithReason(absl::OkStatus(), "NONE")), std::nullopt);
}

TEST(ErrorDetailTest, InvalidFieldNamesTheField) {
  const absl::Status status = InvalidField("sampling.top_p", "expected at most 1, found 2");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "sampling.top_p: expected at most 1, found 2");
  EXPECT_EQ(FieldOf(status), "sampling.top_p");
  EXPECT_EQ(ReasonOf(status), std::nullopt);
}

}  // namespace
}  // namespace nestor
