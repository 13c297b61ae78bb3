#include "engine/model/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nestor {
namespace {

using ::testing::ElementsAre;

TEST(LayOutStep, SortsRowsWidestFirstAndRemembersTheCallersOrder) {
  const std::vector<int32_t> a = {1, 2, 3}, b = {4}, c = {5, 6};
  const std::vector<StepSequence> sequences = {
      {0, /*submodel=*/2, /*position=*/10, a, {}, /*logits_rows=*/1},
      {1, /*submodel=*/0, /*position=*/20, b, {}, /*logits_rows=*/1},
      {2, /*submodel=*/2, /*position=*/30, c, {}, /*logits_rows=*/2},
  };
  const std::vector<int> width_rank = {0, 1, 2};
  const StepLayout step = LayOutStep(sequences, width_rank);
  EXPECT_THAT(step.tokens, ElementsAre(4, 1, 2, 3, 5, 6));
  ASSERT_EQ(step.groups.size(), 2u);
  EXPECT_EQ(step.groups[0].submodel, 0);
  EXPECT_EQ(step.groups[0].end, 1);
  EXPECT_EQ(step.groups[1].submodel, 2);
  EXPECT_EQ(step.groups[1].end, 6);
  EXPECT_EQ(step.sequences[1].slot, 0);
  EXPECT_EQ(step.sequences[1].begin, 1);
  EXPECT_EQ(step.sequences[1].position, 10);
  EXPECT_THAT(step.logits_rows, ElementsAre(0, 3, 4, 5));
  EXPECT_THAT(step.logits_order, ElementsAre(1, 0, 2, 3));
  ASSERT_EQ(step.logits_groups.size(), 2u);
  EXPECT_EQ(step.logits_groups[1].begin, 1);
  EXPECT_EQ(step.logits_groups[1].end, 4);
}

TEST(LayOutStep, PrefillChunksWithoutLogitsLeaveNoLogitsGroup) {
  const std::vector<int32_t> tokens = {1, 2};
  const std::vector<StepSequence> sequences = {{0, 1, 0, tokens, {}, 0}};
  const std::vector<int> width_rank = {1, 0};
  const StepLayout step = LayOutStep(sequences, width_rank);
  EXPECT_TRUE(step.logits_groups.empty());
  EXPECT_TRUE(step.logits_rows.empty());
}

}  // namespace
}  // namespace nestor
