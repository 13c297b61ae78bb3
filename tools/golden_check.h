// Compares the engine with golden results stored beside a checkpoint: golden.json and golden.safetensors,
// made with an independent implementation in float64.
//
// golden.json holds `tokens`, `lengths`, and by submodel `argmax` (one per position), `greedy_after_63`
// (greedy tokens after the first 63) and `handoffs`. golden.safetensors holds `{submodel}.{n}.logits` of the
// last one or two of the first n tokens,
// `{submodel}.{n}.hidden` (the residual stream at the last position after the embedding and after each active
// layer),
// `{submodel}.{n}.ssm.{layer}` and `.conv.{layer}`, and `transplant.{A}>{B}.logits`.
#ifndef NESTOR_TOOLS_GOLDEN_CHECK_H_
#define NESTOR_TOOLS_GOLDEN_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nestor {

// The largest absolute differences of one prompt, run in chunks of one size.
struct GoldenRun {
  std::string submodel;
  int length = 0;
  int chunk = 0;  // tokens a step; equal to length: in one piece
  float logits = 0;
  std::vector<float> hidden;       // by golden row: embedding, then active layers
  std::vector<int> hidden_layers;  // the layer of each row, -1 for the embedding
  float state = 0;                 // recurrent state, where golden has it

  float largest() const;
};

struct GoldenReport {
  std::vector<GoldenRun> runs;
  std::vector<std::string> mismatches;  // argmax or greedy tokens that differ, in words
  struct Transplant {
    std::string name;  // "large>small"
    float logits = 0;
  };
  std::vector<Transplant> transplants;

  float largest() const;
  bool Passes(float tolerance) const { return mismatches.empty() && largest() <= tolerance; }
};

// Runs every submodel and length in one piece, token by token and in every multiple of the prefill grid.
// INVALID_ARGUMENT where the golden files do not fit the checkpoint.
absl::StatusOr<GoldenReport> CheckGolden(const std::string& directory);

// A table for people: a line for each submodel, length and chunk, with the layer of the largest difference.
std::string FormatGoldenReport(const GoldenReport& report, float tolerance);

}  // namespace nestor

#endif  // NESTOR_TOOLS_GOLDEN_CHECK_H_
