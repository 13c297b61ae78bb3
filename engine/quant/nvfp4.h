// NVFP4: 4-bit floats (E2M1) in blocks of 16 along the input axis, each block with an E4M3 scale, the whole
// tensor with one float32 scale. Two codes a byte: the even column in the low nibble.
#ifndef NESTOR_ENGINE_QUANT_NVFP4_H_
#define NESTOR_ENGINE_QUANT_NVFP4_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace nestor {

inline constexpr int64_t kNvfp4Block = 16;  // columns that share a block scale
inline constexpr float kE2M1Max = 6;

// The value of every 4-bit code; bit 3 is the sign.
inline constexpr std::array<float, 16> kE2M1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Rounds to the nearest value, ties to the even code; beyond ±6 to ±6. The value must not be NaN.
uint8_t EncodeE2M1(float value);

// to[i] = (code · block scale) · scale for `count` columns from column `begin` of a row; both are multiples
// of kNvfp4Block. `codes` and `block_scales` are the whole row's: (cols / 2) bytes and (cols / 16) E4M3.
void WidenNvfp4(const std::byte* codes, const std::byte* block_scales, float scale, int64_t begin,
                int64_t count, float* to);

}  // namespace nestor

#endif  // NESTOR_ENGINE_QUANT_NVFP4_H_
