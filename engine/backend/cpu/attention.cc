#include <algorithm>
#include <cmath>

#include "engine/backend/cpu/cpu_operations.h"
#include "engine/backend/cpu/dot.h"

namespace nestor {
namespace {

// Turns scores into probabilities.
void Softmax(absl::Span<float> scores) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  float total = 0;
  for (float& score : scores) {
    score = std::exp(score - largest);
    total += score;
  }
  for (float& score : scores) score /= total;
}

}  // namespace

void CpuOperations::Attend(int layer, const AttentionLayer& attention, RowSet rows, RowBuffer query,
                           RowBuffer key, RowBuffer value, RowBuffer out) {
  const int head_dim = config_.head_dim;
  const int64_t kv_width = config_.kv_width();
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  for (const SequenceRows& sequence : rows.sequences) {
    const int query_heads = attention.query_heads[sequence.submodel];
    const int heads_per_kv = query_heads / config_.num_key_value_heads;
    // Where position p keeps its (KV heads · head_dim) values within its page.
    const auto page = [&](int p) { return sequence.pages[p / kPageTokens]; };
    const auto offset = [&](int p) { return p % kPageTokens * kv_width; };

    for (int row = sequence.begin; row < sequence.end; ++row) {
      const int position = sequence.position + row - sequence.begin;
      std::copy_n(key.row(row), kv_width, state_.keys(page(position), layer) + offset(position));
      std::copy_n(value.row(row), kv_width, state_.values(page(position), layer) + offset(position));

      scores_.resize(std::max<size_t>(scores_.size(), position + 1));
      const absl::Span<float> scores(scores_.data(), position + 1);
      for (int head = 0; head < query_heads; ++head) {
        const int64_t kv_head = int64_t{head / heads_per_kv} * head_dim;
        const float* const q = query.row(row) + int64_t{head} * head_dim;
        for (int p = 0; p <= position; ++p) {
          scores[p] = scale * Dot(q, state_.keys(page(p), layer) + offset(p) + kv_head, head_dim);
        }
        Softmax(scores);
        float* const result = out.row(row) + int64_t{head} * head_dim;
        std::fill_n(result, head_dim, 0.0f);
        for (int p = 0; p <= position; ++p) {
          const float* const v = state_.values(page(p), layer) + offset(p) + kv_head;
          for (int i = 0; i < head_dim; ++i) result[i] += scores[p] * v[i];
        }
      }
    }
  }
}

}  // namespace nestor
