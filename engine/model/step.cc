#include "engine/model/step.h"

#include <algorithm>
#include <numeric>

namespace nestor {
namespace {

void ExtendGroups(std::vector<RowGroup>& groups, int submodel, int rows) {
  const int begin = groups.empty() ? 0 : groups.back().end;
  if (rows == 0) return;
  if (groups.empty() || groups.back().submodel != submodel) {
    groups.push_back({submodel, begin, begin + rows});
  } else {
    groups.back().end += rows;
  }
}

}  // namespace

StepLayout LayOutStep(absl::Span<const StepSequence> sequences, absl::Span<const int> width_rank) {
  std::vector<int> order(sequences.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return width_rank[sequences[a].submodel] < width_rank[sequences[b].submodel];
  });

  std::vector<int> first_logits(sequences.size());  // where the caller expects a sequence's logits
  for (size_t i = 1; i < sequences.size(); ++i) {
    first_logits[i] = first_logits[i - 1] + sequences[i - 1].logits_rows;
  }

  StepLayout step;
  for (const int index : order) {
    const StepSequence& sequence = sequences[index];
    const int begin = static_cast<int>(step.tokens.size());
    const int end = begin + static_cast<int>(sequence.tokens.size());
    step.tokens.insert(step.tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
    step.sequences.push_back(
        {sequence.slot, sequence.submodel, begin, end, sequence.position, sequence.pages});
    ExtendGroups(step.groups, sequence.submodel, end - begin);
    ExtendGroups(step.logits_groups, sequence.submodel, sequence.logits_rows);
    for (int i = 0; i < sequence.logits_rows; ++i) {
      step.logits_rows.push_back(end - sequence.logits_rows + i);
      step.logits_order.push_back(first_logits[index] + i);
    }
  }
  return step;
}

}  // namespace nestor
