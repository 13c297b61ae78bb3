#include "engine/quant/matrix.h"

#include "engine/base/check.h"
#include "engine/quant/float8.h"

namespace nestor {
namespace {

// The element type of a format that is stored element by element.
DType ElementType(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return DType::kF32;
    case WeightFormat::kBF16:
      return DType::kBF16;
    case WeightFormat::kF16:
      return DType::kF16;
    case WeightFormat::kF8E4M3:
      return DType::kF8E4M3;
    case WeightFormat::kNvfp4:
      break;
  }
  return DType::kU8;
}

}  // namespace

std::string_view WeightFormatName(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF8E4M3:
      return "FP8";
    case WeightFormat::kNvfp4:
      return "NVFP4";
    default:
      return DTypeName(ElementType(format));
  }
}

WeightFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return WeightFormat::kF32;
    case DType::kBF16:
      return WeightFormat::kBF16;
    case DType::kF16:
      return WeightFormat::kF16;
    case DType::kF8E4M3:
      return WeightFormat::kF8E4M3;
    case DType::kU8:
      break;
  }
  NESTOR_CHECK(false) << "no weight format of " << DTypeName(dtype);
  return WeightFormat::kF32;
}

int64_t RowBytes(WeightFormat format, int64_t cols) {
  return format == WeightFormat::kNvfp4 ? cols / 2 : cols * ByteSize(ElementType(format));
}

void WidenRow(const Matrix& matrix, int64_t row, Extent columns, float* to) {
  const std::byte* const stored = matrix.row(row);
  switch (matrix.format) {
    case WeightFormat::kNvfp4:
      WidenNvfp4(stored, matrix.row_block_scales(row), matrix.scale, columns.begin, columns.count, to);
      return;
    case WeightFormat::kF8E4M3:
      for (int64_t i = 0; i < columns.count; ++i)
        to[i] = DecodeE4M3(stored[columns.begin + i]) * matrix.scale;
      return;
    default:
      WidenToFloat(ElementType(matrix.format), stored + RowBytes(matrix.format, columns.begin), columns.count,
                   to);
  }
}

}  // namespace nestor
