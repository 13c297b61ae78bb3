// One step: a forward pass over rows of many sequences, each row one token position, different submodels side
// by side.
#ifndef NESTOR_ENGINE_MODEL_STEP_H_
#define NESTOR_ENGINE_MODEL_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace nestor {

// Token positions a KV page holds.
inline constexpr int kPageTokens = 16;

// What one sequence brings to a step: the next tokens after those its state has seen.
struct StepSequence {
  int slot = 0;  // its recurrent state
  int submodel = 0;
  int position = 0;                  // of tokens[0] from the start of the sequence
  absl::Span<const int32_t> tokens;  // not empty
  absl::Span<const int> pages;       // page i holds positions [i·kPageTokens, (i+1)·kPageTokens)
  int logits_rows = 0;               // logits are wanted for this many of the last tokens
};

// Consecutive rows that run one submodel.
struct RowGroup {
  int submodel = 0;
  int begin = 0;
  int end = 0;
};

// Consecutive rows of one sequence.
struct SequenceRows {
  int slot = 0;
  int submodel = 0;
  int begin = 0;
  int end = 0;
  int position = 0;  // of row `begin`
  absl::Span<const int> pages;
};

// The rows an operation works on. Rows outside the groups are left alone.
struct RowSet {
  absl::Span<const RowGroup> groups;
  absl::Span<const SequenceRows> sequences;
};

// The rows of a step, widest submodel first, so that a weight tile is needed by a prefix of the rows.
struct StepLayout {
  std::vector<int32_t> tokens;  // (rows)
  std::vector<RowGroup> groups;
  std::vector<SequenceRows> sequences;
  std::vector<int> logits_rows;         // rows whose logits are wanted, ascending
  std::vector<RowGroup> logits_groups;  // the same, as groups over the gathered rows
  std::vector<int> logits_order;        // gathered row -> its place in the order of the caller's sequences

  RowSet rows() const { return {groups, sequences}; }
};

// `width_rank[submodel]`: 0 for the widest.
StepLayout LayOutStep(absl::Span<const StepSequence> sequences, absl::Span<const int> width_rank);

}  // namespace nestor

#endif  // NESTOR_ENGINE_MODEL_STEP_H_
