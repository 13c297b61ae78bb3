#include "engine/checkpoint/tensor_schema.h"

#include <set>

#include "engine/checkpoint/checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

using testing::ElementsAre;

// 6 Mamba heads × 16 in 2 groups, state 24; 4 query heads × 20 on 2 KV heads. "uneven" keeps 4 Mamba heads in
// layers 2 and 6, 2 query heads in layer 3, 6 experts of width 24 in layer 4.
class TensorSchemaTest : public testing::Test {
 protected:
  TensorSchemaTest() : checkpoint_(*Checkpoint::Open(GoldenFolder("uneven"))) {}

  const ModelConfig& config() const { return checkpoint_.config(); }
  const SubmodelShape& submodel(int index) const { return checkpoint_.elastic().submodels[index]; }
  Extents KeptOf(Axis axis, int layer) const { return Kept(axis, layer, config(), submodel(1)); }

  const Checkpoint checkpoint_;
};

TEST_F(TensorSchemaTest, NamesAreThoseOfHuggingFace) {
  EXPECT_EQ(TensorName(TensorRole::kEmbeddings), "backbone.embeddings.weight");
  EXPECT_EQ(TensorName(TensorRole::kFinalNorm), "backbone.norm_f.weight");
  EXPECT_EQ(TensorName(TensorRole::kLmHead), "lm_head.weight");
  EXPECT_EQ(TensorName(TensorRole::kNorm, 0), "backbone.layers.0.norm.weight");
  EXPECT_EQ(TensorName(TensorRole::kALog, 2), "backbone.layers.2.mixer.A_log");
  EXPECT_EQ(TensorName(TensorRole::kRouterBias, 1), "backbone.layers.1.mixer.gate.e_score_correction_bias");
  EXPECT_EQ(TensorName(TensorRole::kExpertUp, 3, 7), "backbone.layers.3.mixer.experts.7.up_proj.weight");
  EXPECT_EQ(TensorName(TensorRole::kSharedDown, 1),
            "backbone.layers.1.mixer.shared_experts.down_proj.weight");
}

TEST_F(TensorSchemaTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const TensorSpec& spec : TensorSchema(config()))
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
}

TEST_F(TensorSchemaTest, FullShapeKeepsEveryAxisWhole) {
  for (const TensorSpec& spec : TensorSchema(config())) {
    for (const Axis axis : spec.axes) {
      const Extents kept = Kept(axis, spec.layer, config(), config().full);
      ASSERT_EQ(kept.size(), 1u) << spec.name;
      EXPECT_EQ(kept[0].begin, 0) << spec.name;
    }
    EXPECT_EQ(ShapeOf(spec, config(), config().full), checkpoint_.tensor(spec.name).shape) << spec.name;
  }
}

TEST_F(TensorSchemaTest, MambaHeadsAreTheFirstOfEveryGroup) {
  EXPECT_THAT(KeptOf(Axis::kMambaHeads, 2), ElementsAre(Extent{0, 2}, Extent{3, 2}));
  EXPECT_THAT(KeptOf(Axis::kMambaInner, 2), ElementsAre(Extent{0, 32}, Extent{48, 32}));
}

TEST_F(TensorSchemaTest, ConvolutionKeepsBAndCWhole) {
  // x: 96 channels in two groups; B and C: 96 more.
  EXPECT_THAT(KeptOf(Axis::kConvChannels, 2), ElementsAre(Extent{0, 32}, Extent{48, 32}, Extent{96, 96}));
}

TEST_F(TensorSchemaTest, InProjectionCutsZAndXAndDt) {
  // Rows: z 0…95, x 96…191, B and C 192…287, dt 288…293.
  EXPECT_THAT(KeptOf(Axis::kInProjRows, 2), ElementsAre(Extent{0, 32}, Extent{48, 32}, Extent{96, 32},
                                                        Extent{144, 32}, Extent{192, 98}, Extent{291, 2}));
}

TEST_F(TensorSchemaTest, QueryHeadsAreTheFirstOfEveryKvGroup) {
  EXPECT_THAT(KeptOf(Axis::kQuery, 3), ElementsAre(Extent{0, 20}, Extent{40, 20}));
  EXPECT_THAT(KeptOf(Axis::kKeyValue, 3), ElementsAre(Extent{0, 40}));
}

TEST_F(TensorSchemaTest, OtherAxesArePrefixes) {
  EXPECT_THAT(KeptOf(Axis::kHidden, -1), ElementsAre(Extent{0, 56}));
  EXPECT_THAT(KeptOf(Axis::kVocab, -1), ElementsAre(Extent{0, 320}));
  EXPECT_THAT(KeptOf(Axis::kExperts, 4), ElementsAre(Extent{0, 6}));
  EXPECT_THAT(KeptOf(Axis::kExpert, 4), ElementsAre(Extent{0, 24}));
  EXPECT_THAT(KeptOf(Axis::kExpertInput, 4), ElementsAre(Extent{0, 56}));
  EXPECT_THAT(KeptOf(Axis::kSharedExpert, 4), ElementsAre(Extent{0, 40}));
  EXPECT_THAT(KeptOf(Axis::kMlp, 5), ElementsAre(Extent{0, 64}));
  EXPECT_THAT(KeptOf(Axis::kConvTaps, 0), ElementsAre(Extent{0, 4}));
}

TEST_F(TensorSchemaTest, LatentExpertsReadTheLatentWidth) {
  const Checkpoint latent = *Checkpoint::Open(GoldenFolder("latent"));
  const SubmodelShape& medium = latent.elastic().submodels[1];
  EXPECT_THAT(Kept(Axis::kExpertInput, 1, latent.config(), medium), ElementsAre(Extent{0, 32}));
  EXPECT_EQ(latent.tensor(TensorName(TensorRole::kLatentDown, 1)).shape, (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(latent.tensor(TensorName(TensorRole::kLatentUp, 1)).shape, (std::vector<int64_t>{64, 32}));
}

TEST_F(TensorSchemaTest, UsesOnlyActiveLayersAndKeptExperts) {
  const auto spec = [](int layer, int expert) {
    return TensorSpec{TensorRole::kExpertUp, layer, expert, "", {}};
  };
  EXPECT_TRUE(Uses(submodel(1), spec(4, 5)));
  EXPECT_FALSE(Uses(submodel(1), spec(4, 6)));
  EXPECT_FALSE(Uses(submodel(2), spec(2, -1)));
  EXPECT_TRUE(Uses(submodel(2), spec(-1, -1)));
}

}  // namespace
}  // namespace nestor
