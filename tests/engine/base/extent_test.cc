#include "engine/base/extent.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nestor {
namespace {

using testing::ElementsAre;

TEST(ExtentTest, TouchingExtentsAreOne) {
  Extents extents;
  AppendExtent(extents, {0, 4});
  AppendExtent(extents, {4, 2});
  EXPECT_THAT(extents, ElementsAre(Extent{0, 6}));
  AppendExtent(extents, {8, 1});
  AppendExtent(extents, {9, 3});
  EXPECT_THAT(extents, ElementsAre(Extent{0, 6}, Extent{8, 4}));
  EXPECT_EQ(TotalCount(extents), 10);
}

TEST(ExtentTest, EmptyExtentsVanish) {
  Extents extents;
  AppendExtent(extents, {5, 0});
  EXPECT_TRUE(extents.empty());
  EXPECT_EQ(TotalCount(extents), 0);
  AppendExtent(extents, {0, 2});
  AppendExtent(extents, {7, 0});
  AppendExtent(extents, {2, 1});
  EXPECT_THAT(extents, ElementsAre(Extent{0, 3}));
}

}  // namespace
}  // namespace nestor
