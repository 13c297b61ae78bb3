#include <algorithm>

#include "engine/backend/cpu/cpu_operations.h"
#include "engine/backend/cpu/dot.h"

namespace nestor {
namespace {

bool IsAligned(const std::byte* data) { return reinterpret_cast<uintptr_t>(data) % alignof(float) == 0; }

}  // namespace

RowBuffer CpuOperations::Allocate(int rows, int64_t width) {
  return {buffers_.emplace_back(rows * width).data(), width};
}

void CpuOperations::Embed(const Matrix& matrix, absl::Span<const int32_t> tokens,
                          absl::Span<const int64_t> widths, RowSet rows, RowBuffer out) {
  for (const RowGroup& group : rows.groups) {
    for (int row = group.begin; row < group.end; ++row) {
      nestor::WidenRow(matrix, tokens[row], {0, widths[group.submodel]}, out.row(row));
    }
  }
}

void CpuOperations::Multiply(const Linear& linear, RowSet rows, RowBuffer in, RowBuffer out) {
  MultiplyGroups(linear, rows, in, out, Store::kAssign);
}

void CpuOperations::MultiplyAdd(const Linear& linear, RowSet rows, RowBuffer in, RowBuffer out) {
  MultiplyGroups(linear, rows, in, out, Store::kAdd);
}

void CpuOperations::Add(absl::Span<const int64_t> widths, RowSet rows, RowBuffer in, RowBuffer out) {
  for (const RowGroup& group : rows.groups) {
    for (int row = group.begin; row < group.end; ++row) {
      for (int64_t i = 0; i < widths[group.submodel]; ++i) out.row(row)[i] += in.row(row)[i];
    }
  }
}

void CpuOperations::GatherRows(absl::Span<const int> indices, int64_t width, RowBuffer in, RowBuffer out) {
  for (size_t i = 0; i < indices.size(); ++i) std::copy_n(in.row(indices[i]), width, out.row(i));
}

void CpuOperations::MultiplyGroups(const Linear& linear, RowSet rows, RowBuffer in, RowBuffer out,
                                   Store store) {
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (const RowGroup& group : rows.groups) {
    inputs.clear();
    outputs.clear();
    for (int row = group.begin; row < group.end; ++row) {
      inputs.push_back(in.row(row));
      outputs.push_back(out.row(row));
    }
    MultiplySlice(linear.matrix, linear.slices[group.submodel], inputs, outputs, store);
  }
}

void CpuOperations::MultiplySlice(const Matrix& matrix, const MatrixSlice& slice,
                                  absl::Span<const float* const> inputs, absl::Span<float* const> outputs,
                                  Store store) {
  int64_t column = 0;  // of the output
  for (const Extent& extent : slice.rows) {
    for (int64_t i = 0; i < extent.count; ++i, ++column) {
      const float* const weights = WidenRow(matrix, extent.begin + i, slice);
      for (size_t row = 0; row < inputs.size(); ++row) {
        const float product = Dot(weights, inputs[row], slice.in_width);
        float& output = outputs[row][column];
        output = store == Store::kAdd ? output + product : product;
      }
    }
  }
}

const float* CpuOperations::WidenRow(const Matrix& matrix, int64_t row, const MatrixSlice& slice) {
  const std::byte* const stored = matrix.row(row);
  if (matrix.format == WeightFormat::kF32 && slice.cols.size() == 1 && slice.cols[0].begin == 0 &&
      IsAligned(stored)) {
    return reinterpret_cast<const float*>(stored);
  }
  weight_row_.resize(std::max<size_t>(weight_row_.size(), slice.in_width));
  int64_t column = 0;
  for (const Extent& extent : slice.cols) {
    nestor::WidenRow(matrix, row, extent, weight_row_.data() + column);
    column += extent.count;
  }
  return weight_row_.data();
}

}  // namespace nestor
