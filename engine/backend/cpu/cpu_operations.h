// The reference kernels: every operation of engine/model/operations.h in plain float32 C++, the specification
// that faster kernels are tested against. They plug in here, an operation at a time.
#ifndef NESTOR_ENGINE_BACKEND_CPU_CPU_OPERATIONS_H_
#define NESTOR_ENGINE_BACKEND_CPU_CPU_OPERATIONS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/backend/cpu/state_store.h"
#include "engine/backend/cpu/zeroed_array.h"
#include "engine/model/operations.h"

namespace nestor {

// Not thread-safe: one step at a time. What each operation computes is written at `Operations`.
class CpuOperations {
 public:
  CpuOperations(const ModelConfig& config, int slots, int pages)
      : config_(config), state_(config, slots, pages) {}

  RowBuffer Allocate(int rows, int64_t width);

  // norm.cc
  void RmsNorm(absl::Span<const float> weight, float eps, absl::Span<const int64_t> widths, RowSet rows,
               RowBuffer in, RowBuffer out);
  void GatedNorm(const MambaLayer& mamba, RowSet rows, RowBuffer projected, RowBuffer y);

  // linear.cc
  void Embed(const Matrix& matrix, absl::Span<const int32_t> tokens, absl::Span<const int64_t> widths,
             RowSet rows, RowBuffer out);
  void Multiply(const Linear& linear, RowSet rows, RowBuffer in, RowBuffer out);
  void MultiplyAdd(const Linear& linear, RowSet rows, RowBuffer in, RowBuffer out);
  void Add(absl::Span<const int64_t> widths, RowSet rows, RowBuffer in, RowBuffer out);
  void GatherRows(absl::Span<const int> indices, int64_t width, RowBuffer in, RowBuffer out);

  // mlp.cc
  void MlpAdd(const Mlp& mlp, RowSet rows, RowBuffer in, RowBuffer hidden, RowBuffer out);
  void RouteExperts(const MoeLayer& moe, RowSet rows, RowBuffer router_in, RowBuffer in, RowBuffer out);

  // mamba.cc
  void CausalConv(int layer, const MambaLayer& mamba, RowSet rows, RowBuffer projected);
  void SelectiveScan(int layer, const MambaLayer& mamba, RowSet rows, RowBuffer projected, RowBuffer y);

  // attention.cc
  void Attend(int layer, const AttentionLayer& attention, RowSet rows, RowBuffer query, RowBuffer key,
              RowBuffer value, RowBuffer out);

  StateStore& state() { return state_; }
  const StateStore& state() const { return state_; }

 private:
  enum class Store { kAssign, kAdd };

  // outputs[i] (=, +=) slice of matrix · inputs[i].
  void MultiplySlice(const Matrix& matrix, const MatrixSlice& slice, absl::Span<const float* const> inputs,
                     absl::Span<float* const> outputs, Store store);
  void MultiplyGroups(const Linear& linear, RowSet rows, RowBuffer in, RowBuffer out, Store store);
  // One row of a matrix, the kept columns side by side, as float32; in place where it is stored so.
  const float* WidenRow(const Matrix& matrix, int64_t row, const MatrixSlice& slice);

  // An expert's share in one row.
  struct ExpertChoice {
    int row = 0;
    float weight = 0;
  };
  // expert -> the rows of the group that chose it, ascending.
  void ChooseExperts(const MoeLayer& moe, const RowGroup& group, RowBuffer router_in,
                     std::vector<std::vector<ExpertChoice>>& chosen);
  void RunExpert(const MoeLayer& moe, int expert, int submodel, absl::Span<const ExpertChoice> rows,
                 RowBuffer in, RowBuffer out);

  const ModelConfig& config_;
  StateStore state_;
  std::vector<ZeroedArray> buffers_;
  std::vector<float> weight_row_;  // scratch of WidenRow
  std::vector<float> scores_;      // scratch of Attend: (positions)
};

static_assert(Operations<CpuOperations>);

// Numerics shared by kernels.
float Silu(float x);
float Softplus(float x);  // linear above 20

}  // namespace nestor

#endif  // NESTOR_ENGINE_BACKEND_CPU_CPU_OPERATIONS_H_
