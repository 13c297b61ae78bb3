// One test body for the operations of every backend: results against plain float64 formulas written from the
// architecture, over odd shapes, cut heads, mixed submodels. A backend instantiates it with a Backend that
// has
//
//   using Ops = …;                                                     // models Operations
//   static std::unique_ptr<Ops> Create(const ModelConfig&, int slots, int pages);
//   static void Write(RowBuffer, int64_t row, const std::vector<float>&);
//   static std::vector<float> Read(RowBuffer, int64_t row, int64_t width);
#ifndef NESTOR_TESTS_ENGINE_BACKEND_OPERATIONS_TEST_H_
#define NESTOR_TESTS_ENGINE_BACKEND_OPERATIONS_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/operations.h"
#include "engine/model/step.h"

namespace nestor {

template <typename Backend>
class OperationsTest : public ::testing::Test {
 protected:
  using Doubles = std::vector<double>;

  static constexpr float kTolerance = 2e-5f;  // float32 against float64 on values around 1

  std::vector<float> Random(int64_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }

  // Rounds the values to the dtype and keeps the stored bytes alive for the test.
  Matrix Store(DType dtype, int64_t rows, int64_t cols, std::vector<float>& values) {
    std::vector<std::byte>& bytes = stored_.emplace_back(rows * cols * ByteSize(dtype));
    for (int64_t i = 0; i < rows * cols; ++i) {
      if (dtype == DType::kF32) {
        std::memcpy(&bytes[4 * i], &values[i], 4);
      } else {
        const uint16_t upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16);
        std::memcpy(&bytes[2 * i], &upper, 2);
        values[i] = std::bit_cast<float>(static_cast<uint32_t>(upper) << 16);
      }
    }
    return {FormatOf(dtype), bytes.data(), rows, cols};
  }

  static MatrixSlice Slice(Extents rows, Extents cols) {
    return {rows, cols, TotalCount(rows), TotalCount(cols)};
  }
  static MatrixSlice Prefix(int64_t rows, int64_t cols) { return Slice({{0, rows}}, {{0, cols}}); }

  static std::vector<int64_t> Indices(const Extents& extents) {
    std::vector<int64_t> indices;
    for (const Extent& extent : extents) {
      for (int64_t i = 0; i < extent.count; ++i) indices.push_back(extent.begin + i);
    }
    return indices;
  }

  // slice of (rows, cols) values · x
  static Doubles Product(const std::vector<float>& values, int64_t cols, const MatrixSlice& slice,
                         const std::vector<double>& x) {
    Doubles result;
    const std::vector<int64_t> kept = Indices(slice.cols);
    for (const int64_t row : Indices(slice.rows)) {
      double sum = 0;
      for (size_t i = 0; i < kept.size(); ++i) sum += double{values[row * cols + kept[i]]} * x[i];
      result.push_back(sum);
    }
    return result;
  }

  static Doubles Widen(const std::vector<float>& values) { return {values.begin(), values.end()}; }

  RowBuffer Fill(typename Backend::Ops& ops, const std::vector<std::vector<float>>& rows) {
    const RowBuffer buffer =
        ops.Allocate(static_cast<int>(rows.size()), static_cast<int64_t>(rows[0].size()));
    for (size_t row = 0; row < rows.size(); ++row) Backend::Write(buffer, row, rows[row]);
    return buffer;
  }

  std::vector<std::vector<float>> RandomRows(int rows, int64_t width) {
    std::vector<std::vector<float>> values;
    for (int row = 0; row < rows; ++row) values.push_back(Random(width));
    return values;
  }

  void ExpectRow(RowBuffer buffer, int64_t row, const Doubles& expected) {
    const std::vector<float> found = Backend::Read(buffer, row, static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], kTolerance * std::max(1.0, std::abs(expected[i])))
          << "row " << row << ", column " << i;
    }
  }

  // A small Mamba layer with random parameters; heads as given.
  MambaLayer RandomMamba(const ModelConfig& config, std::vector<HeadSlice> heads) {
    const int total = heads[0].total, channels = config.conv_channels(total);
    MambaLayer mamba;
    mamba.conv_weight = Random(int64_t{channels} * config.conv_kernel);
    mamba.conv_bias = Random(channels);
    mamba.a = Random(total);
    for (float& a : mamba.a) a = -std::exp(a);
    mamba.d = Random(total);
    mamba.dt_bias = Random(total);
    mamba.gated_norm = Random(config.mamba_inner(total));
    mamba.heads = std::move(heads);
    return mamba;
  }

  static ModelConfig SmallConfig() {
    ModelConfig config;
    config.mamba_head_dim = 5;
    config.ssm_state_size = 17;
    config.n_groups = 2;
    config.conv_kernel = 4;
    config.num_key_value_heads = 2;
    config.head_dim = 15;
    config.norm_eps = 1e-5f;
    config.time_step_limit_max = INFINITY;
    config.num_experts_per_tok = 2;
    config.routed_scaling_factor = 2.5f;
    LayerShape mamba, attention;
    mamba.kind = LayerKind::kMamba;
    mamba.mamba_heads = 6;
    attention.kind = LayerKind::kAttention;
    attention.query_heads = 4;
    config.full.layers = {mamba, attention};
    return config;
  }

  static double SiluOf(double x) { return x / (1 + std::exp(-x)); }

  std::mt19937 random_{42};
  std::deque<std::vector<std::byte>> stored_;
};

TYPED_TEST_SUITE_P(OperationsTest);

TYPED_TEST_P(OperationsTest, MultiplyCoversOddShapesTypesAndCuts) {
  const ModelConfig config = this->SmallConfig();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t out : {1, 15, 17}) {
      for (const int64_t in : {1, 15, 16, 17, 63, 130}) {
        auto ops = TypeParam::Create(config, 1, 1);
        std::vector<float> values = this->Random(out * in);
        Linear linear{this->Store(dtype, out, in, values), {}};
        const int64_t half = (in + 1) / 2;
        linear.slices = {
            this->Prefix(out, in), this->Prefix((out + 1) / 2, half),
            this->Slice({{out - 1, 1}}, in > 4 ? Extents{{1, 2}, {in - 1, 1}} : Extents{{0, in}}),
            MatrixSlice{}};
        const std::vector<RowGroup> groups = {{0, 0, 2}, {1, 2, 3}, {2, 3, 5}, {3, 5, 6}};
        const auto input = this->RandomRows(6, in), output = this->RandomRows(6, out);
        const RowBuffer x = this->Fill(*ops, input), assigned = this->Fill(*ops, output),
                        added = this->Fill(*ops, output);
        ops->Multiply(linear, {groups, {}}, x, assigned);
        ops->MultiplyAdd(linear, {groups, {}}, x, added);
        for (const RowGroup& group : groups) {
          for (int row = group.begin; row < group.end; ++row) {
            auto expected = this->Product(values, in, linear.slices[group.submodel], this->Widen(input[row]));
            this->ExpectRow(assigned, row, expected);
            for (size_t i = 0; i < expected.size(); ++i) expected[i] += output[row][i];
            this->ExpectRow(added, row, expected);
          }
        }
        this->ExpectRow(assigned, 5, this->Widen(output[5]));  // a skipped layer leaves its rows alone
      }
    }
  }
}

TYPED_TEST_P(OperationsTest, EmbedAddAndGather) {
  const ModelConfig config = this->SmallConfig();
  auto ops = TypeParam::Create(config, 1, 1);
  std::vector<float> table = this->Random(7 * 9);
  const Matrix matrix = this->Store(DType::kBF16, 7, 9, table);
  const std::vector<int32_t> tokens = {6, 0, 3};
  const std::vector<int64_t> widths = {9, 4};
  const std::vector<RowGroup> groups = {{0, 0, 1}, {1, 1, 3}};
  const RowBuffer rows = ops->Allocate(3, 9), sum = ops->Allocate(3, 9), gathered = ops->Allocate(2, 9);
  ops->Embed(matrix, tokens, widths, {groups, {}}, rows);
  ops->Add(widths, {groups, {}}, rows, sum);
  ops->Add(widths, {groups, {}}, rows, sum);
  const std::vector<int> indices = {2, 0};
  ops->GatherRows(indices, 9, rows, gathered);
  for (int row = 0; row < 3; ++row) {
    const int64_t width = row == 0 ? 9 : 4;
    std::vector<double> expected(9);  // zeros beyond the submodel's width
    std::copy_n(table.begin() + tokens[row] * 9, width, expected.begin());
    this->ExpectRow(rows, row, expected);
    if (row == 2) this->ExpectRow(gathered, 0, expected);
    for (double& value : expected) value *= 2;
    this->ExpectRow(sum, row, expected);
  }
}

TYPED_TEST_P(OperationsTest, RmsNormUsesTheSubmodelsWidth) {
  const ModelConfig config = this->SmallConfig();
  auto ops = TypeParam::Create(config, 1, 1);
  const std::vector<float> weight = this->Random(63);
  const std::vector<int64_t> widths = {63, 17};
  const std::vector<RowGroup> groups = {{0, 0, 1}, {1, 1, 2}};
  const auto input = this->RandomRows(2, 63);
  const RowBuffer x = this->Fill(*ops, input), y = ops->Allocate(2, 63);
  ops->RmsNorm(weight, 1e-5f, widths, {groups, {}}, x, y);
  for (int row = 0; row < 2; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < widths[row]; ++i) squares += double{input[row][i]} * input[row][i];
    std::vector<double> expected(63);
    for (int64_t i = 0; i < widths[row]; ++i) {
      expected[i] = weight[i] * input[row][i] / std::sqrt(squares / widths[row] + 1e-5);
    }
    this->ExpectRow(y, row, expected);
  }
}

// Convolution, scan and gated norm over two sequences, whole and with cut heads; the second sequence comes in
// two steps.
TYPED_TEST_P(OperationsTest, MambaMatchesTheRecurrence) {
  const ModelConfig config = this->SmallConfig();
  auto ops = TypeParam::Create(config, 2, 1);
  const MambaLayer mamba = this->RandomMamba(config, {{6, 6, 2}, {4, 6, 2}});
  constexpr int kTokens = 7;
  for (const int submodel : {0, 1}) {
    const HeadSlice heads = mamba.heads[submodel];
    const int inner = config.mamba_inner(heads.kept), channels = config.conv_channels(heads.kept);
    const int parent_inner = config.mamba_inner(heads.total);
    const auto input = this->RandomRows(kTokens, inner + channels + heads.kept);
    const RowBuffer projected = this->Fill(*ops, input), y = ops->Allocate(kTokens, inner);
    for (const auto& [begin, end] : {std::pair{0, 2}, std::pair{2, kTokens}}) {
      const std::vector<RowGroup> groups = {{submodel, begin, end}};
      const std::vector<SequenceRows> sequences = {{submodel, submodel, begin, end, begin, {}}};
      ops->CausalConv(0, mamba, {groups, sequences}, projected);
      ops->SelectiveScan(0, mamba, {groups, sequences}, projected, y);
      ops->GatedNorm(mamba, {groups, sequences}, projected, y);
    }

    const auto parent_channel = [&](int c) {
      if (c >= inner) return parent_inner + c - inner;
      return heads.parent(c / config.mamba_head_dim) * config.mamba_head_dim + c % config.mamba_head_dim;
    };
    std::vector<double> state(int64_t{inner} * config.ssm_state_size);
    for (int t = 0; t < kTokens; ++t) {
      std::vector<double> xbc(channels);
      for (int c = 0; c < channels; ++c) {
        double sum = mamba.conv_bias[parent_channel(c)];
        for (int tap = 0; tap < 4; ++tap) {
          const int from = t - 3 + tap;
          if (from >= 0)
            sum += double{mamba.conv_weight[parent_channel(c) * 4 + tap]} * input[from][inner + c];
        }
        xbc[c] = this->SiluOf(sum);
      }
      std::vector<double> expected(inner);
      for (int i = 0; i < inner; ++i) {
        const int head = i / config.mamba_head_dim, parent = heads.parent(head);
        const int group = head / (heads.kept / 2);
        const double dt =
            std::log1p(std::exp(double{input[t][inner + channels + head]} + mamba.dt_bias[parent]));
        double sum = mamba.d[parent] * xbc[i];
        for (int n = 0; n < config.ssm_state_size; ++n) {
          double& s = state[int64_t{i} * config.ssm_state_size + n];
          s = std::exp(dt * mamba.a[parent]) * s +
              dt * xbc[i] * xbc[inner + group * config.ssm_state_size + n];
          sum += s * xbc[inner + (2 + group) * config.ssm_state_size + n];
        }
        expected[i] = sum * this->SiluOf(input[t][i]);
      }
      const int group_width = inner / 2;
      for (int group = 0; group < 2; ++group) {
        double squares = 0;
        for (int i = 0; i < group_width; ++i) squares += std::pow(expected[group * group_width + i], 2);
        for (int i = 0; i < group_width; ++i) {
          const int at = group * group_width + i;
          expected[at] *= mamba.gated_norm[parent_channel(at)] / std::sqrt(squares / group_width + 1e-5);
        }
      }
      this->ExpectRow(y, t, expected);
    }
  }
}

TYPED_TEST_P(OperationsTest, TimeStepLimitClampsDt) {
  ModelConfig config = this->SmallConfig();
  config.time_step_limit_min = 0.5f;
  config.time_step_limit_max = 0.5f;
  auto ops = TypeParam::Create(config, 1, 1);
  const MambaLayer mamba = this->RandomMamba(config, {{6, 6, 2}});
  const int inner = config.mamba_inner(6), channels = config.conv_channels(6);
  const auto input = this->RandomRows(1, inner + channels + 6);
  const RowBuffer projected = this->Fill(*ops, input), y = ops->Allocate(1, inner);
  const std::vector<RowGroup> groups = {{0, 0, 1}};
  const std::vector<SequenceRows> sequences = {{0, 0, 0, 1, 0, {}}};
  ops->SelectiveScan(0, mamba, {groups, sequences}, projected, y);
  std::vector<double> expected(inner);
  for (int i = 0; i < inner; ++i) {
    const int head = i / config.mamba_head_dim;
    const float* const b = &input[0][2 * inner + head / 3 * config.ssm_state_size];
    const float* const c = b + 2 * config.ssm_state_size;
    double product = 0;
    for (int n = 0; n < config.ssm_state_size; ++n) product += double{b[n]} * c[n];
    expected[i] = input[0][inner + i] * (0.5 * product + mamba.d[head]);
  }
  this->ExpectRow(y, 0, expected);
}

// Two sequences side by side, pages in any order, the first in two steps, the second with half of the query
// heads.
TYPED_TEST_P(OperationsTest, AttendMatchesTheSoftmax) {
  const ModelConfig config = this->SmallConfig();
  auto ops = TypeParam::Create(config, 1, 8);
  AttentionLayer attention;
  attention.query_heads = {4, 2};
  constexpr int kTokens = 37;  // three pages
  const std::vector<int> pages[] = {{5, 0, 3}, {7, 6, 1}};
  for (const int submodel : {0, 1}) {
    const int heads = attention.query_heads[submodel];
    const auto q = this->RandomRows(kTokens, heads * 15), k = this->RandomRows(kTokens, 30),
               v = this->RandomRows(kTokens, 30);
    const RowBuffer query = this->Fill(*ops, q), key = this->Fill(*ops, k), value = this->Fill(*ops, v),
                    out = ops->Allocate(kTokens, heads * 15);
    for (const auto& [begin, end] : {std::pair{0, 20}, std::pair{20, kTokens}}) {
      const std::vector<RowGroup> groups = {{submodel, begin, end}};
      const std::vector<SequenceRows> sequences = {{0, submodel, begin, end, begin, pages[submodel]}};
      ops->Attend(1, attention, {groups, sequences}, query, key, value, out);
    }
    for (int t = 0; t < kTokens; ++t) {
      std::vector<double> expected(heads * 15);
      for (int head = 0; head < heads; ++head) {
        const int kv = head / (heads / 2) * 15;
        std::vector<double> scores(t + 1);
        double total = 0;
        for (int p = 0; p <= t; ++p) {
          for (int i = 0; i < 15; ++i) scores[p] += double{q[t][head * 15 + i]} * k[p][kv + i];
          scores[p] = std::exp(scores[p] / std::sqrt(15.0));
          total += scores[p];
        }
        for (int p = 0; p <= t; ++p) {
          for (int i = 0; i < 15; ++i) expected[head * 15 + i] += scores[p] / total * v[p][kv + i];
        }
      }
      this->ExpectRow(out, t, expected);
    }
  }
}

TYPED_TEST_P(OperationsTest, MlpIsUngatedSquaredRelu) {
  const ModelConfig config = this->SmallConfig();
  auto ops = TypeParam::Create(config, 1, 1);
  std::vector<float> up = this->Random(17 * 15, 0.3f), down = this->Random(15 * 17, 0.3f);
  const Mlp mlp{{this->Store(DType::kF32, 17, 15, up), {this->Prefix(17, 15), this->Prefix(6, 9)}},
                {this->Store(DType::kF32, 15, 17, down), {this->Prefix(15, 17), this->Prefix(9, 6)}}};
  const std::vector<RowGroup> groups = {{0, 0, 2}, {1, 2, 3}};
  const auto input = this->RandomRows(3, 15), residual = this->RandomRows(3, 15);
  const RowBuffer x = this->Fill(*ops, input), out = this->Fill(*ops, residual),
                  hidden = ops->Allocate(3, 17);
  ops->MlpAdd(mlp, {groups, {}}, x, hidden, out);
  for (int row = 0; row < 3; ++row) {
    const int submodel = row < 2 ? 0 : 1;
    auto h = this->Product(up, 15, mlp.up.slices[submodel], this->Widen(input[row]));
    for (double& value : h) value = std::pow(std::max(value, 0.0), 2);
    auto expected = this->Product(down, 17, mlp.down.slices[submodel], h);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += residual[row][i];
    this->ExpectRow(out, row, expected);
  }
}

// A bias large enough to decide the choice, but absent from the weights; with and without expert groups.
TYPED_TEST_P(OperationsTest, ExpertsAreChosenWithTheBiasAndWeighedWithout) {
  constexpr int kExperts = 6, kHidden = 9, kWidth = 7;
  for (const auto& [n_group, topk_group] : {std::pair{1, 1}, std::pair{3, 1}}) {
    ModelConfig config = this->SmallConfig();
    config.n_group = n_group;
    config.topk_group = topk_group;
    auto ops = TypeParam::Create(config, 1, 1);
    std::vector<float> router = this->Random(kExperts * kHidden);
    MoeLayer moe;
    moe.router = {this->Store(DType::kF32, kExperts, kHidden, router), {this->Prefix(kExperts, kHidden)}};
    moe.router_bias = this->Random(kExperts, 2.0f);
    moe.up.slices = {this->Prefix(kWidth, kHidden)};
    moe.down.slices = {this->Prefix(kHidden, kWidth)};
    std::vector<std::vector<float>> ups, downs;
    for (int expert = 0; expert < kExperts; ++expert) {
      ups.push_back(this->Random(kWidth * kHidden, 0.3f));
      downs.push_back(this->Random(kHidden * kWidth, 0.3f));
      moe.up.matrices.push_back(this->Store(DType::kBF16, kWidth, kHidden, ups.back()));
      moe.down.matrices.push_back(this->Store(DType::kBF16, kHidden, kWidth, downs.back()));
    }
    constexpr int kRows = 20;
    const std::vector<RowGroup> groups = {{0, 0, kRows}};
    const auto input = this->RandomRows(kRows, kHidden);
    const RowBuffer x = this->Fill(*ops, input), out = this->Fill(*ops, this->RandomRows(kRows, kHidden));
    ops->RouteExperts(moe, {groups, {}}, x, x, out);
    for (int row = 0; row < kRows; ++row) {
      auto scores = this->Product(router, kHidden, this->Prefix(kExperts, kHidden), this->Widen(input[row]));
      for (double& score : scores) score = 1 / (1 + std::exp(-score));
      std::vector<double> choice = scores;
      for (int expert = 0; expert < kExperts; ++expert) choice[expert] += moe.router_bias[expert];
      if (n_group > 1) {  // groups of two, so a group's score is its sum
        int best = 0;
        for (int group = 1; group < 3; ++group) {
          if (choice[2 * group] + choice[2 * group + 1] > choice[2 * best] + choice[2 * best + 1])
            best = group;
        }
        for (int expert = 0; expert < kExperts; ++expert) {
          if (expert / 2 != best) choice[expert] = -INFINITY;
        }
      }
      std::vector<int> order(kExperts);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int a, int b) { return choice[a] > choice[b]; });
      std::vector<double> expected(kHidden);
      for (const int expert : {order[0], order[1]}) {
        auto h = this->Product(ups[expert], kHidden, moe.up.slices[0], this->Widen(input[row]));
        for (double& value : h) value = std::pow(std::max(value, 0.0), 2);
        const auto y = this->Product(downs[expert], kWidth, moe.down.slices[0], h);
        const double weight = 2.5 * scores[expert] / (scores[order[0]] + scores[order[1]]);
        for (int i = 0; i < kHidden; ++i) expected[i] += weight * y[i];
      }
      this->ExpectRow(out, row, expected);
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(OperationsTest, MultiplyCoversOddShapesTypesAndCuts, EmbedAddAndGather,
                            RmsNormUsesTheSubmodelsWidth, MambaMatchesTheRecurrence, TimeStepLimitClampsDt,
                            AttendMatchesTheSoftmax, MlpIsUngatedSquaredRelu,
                            ExpertsAreChosenWithTheBiasAndWeighedWithout);

}  // namespace nestor

#endif  // NESTOR_TESTS_ENGINE_BACKEND_OPERATIONS_TEST_H_
