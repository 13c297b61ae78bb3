// A weight matrix as a checkpoint stores it, and its exact widening to float32.
#ifndef NESTOR_ENGINE_QUANT_MATRIX_H_
#define NESTOR_ENGINE_QUANT_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/extent.h"
#include "engine/quant/dtype.h"
#include "engine/quant/nvfp4.h"

namespace nestor {

// How the elements of a matrix are stored. kF8E4M3 is ModelOpt's FP8 with one scale for the tensor, kNvfp4
// its 4-bit format (nvfp4.h).
enum class WeightFormat { kF32, kBF16, kF16, kF8E4M3, kNvfp4 };

// "F32", "BF16", "F16", "FP8", "NVFP4".
std::string_view WeightFormatName(WeightFormat format);

// The format of a matrix stored as plain elements of this type; `dtype` is any but U8.
WeightFormat FormatOf(DType dtype);

// Bytes of one row of `cols` elements, block scales not counted. NVFP4 needs a multiple of 16 columns.
int64_t RowBytes(WeightFormat format, int64_t cols);

// A full parent matrix (rows, cols), row-major, contiguous, not aligned, in its stored format. Weight-only:
// element = stored value · scale (NVFP4: code · block scale · scale) in float32; activations are never
// quantised.
struct Matrix {
  WeightFormat format = WeightFormat::kF32;
  const std::byte* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* block_scales = nullptr;  // (rows, cols / 16) E4M3, row-major; NVFP4 only
  float scale = 1;                          // weight_scale of FP8, weight_scale_2 of NVFP4

  const std::byte* row(int64_t index) const { return data + index * RowBytes(format, cols); }
  const std::byte* row_block_scales(int64_t index) const {
    return block_scales + index * (cols / kNvfp4Block);
  }
};

// to[i] = the element in column columns.begin + i, dequantised. For NVFP4 both begin and count are multiples
// of kNvfp4Block (Checkpoint::Open sees to it for every submodel).
void WidenRow(const Matrix& matrix, int64_t row, Extent columns, float* to);

}  // namespace nestor

#endif  // NESTOR_ENGINE_QUANT_MATRIX_H_
