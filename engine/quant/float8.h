// The 8-bit float E4M3 (the "fn" variant: no infinities, 0x7f and 0xff are NaN, largest value 448), as stored
// FP8 weights and as block scales of NVFP4.
#ifndef NESTOR_ENGINE_QUANT_FLOAT8_H_
#define NESTOR_ENGINE_QUANT_FLOAT8_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace nestor {

inline constexpr float kE4M3Max = 448;

// The value of every code, exact in float32.
extern const std::array<float, 256> kE4M3Values;

inline float DecodeE4M3(std::byte code) { return kE4M3Values[std::to_integer<size_t>(code)]; }

inline bool IsE4M3Nan(std::byte code) { return (code & std::byte{0x7f}) == std::byte{0x7f}; }

// Rounds to the nearest value, ties to the even mantissa; what lies beyond ±448, infinities included, becomes
// ±448; NaN becomes NaN. Signs are kept, that of zero too.
std::byte EncodeE4M3(float value);

}  // namespace nestor

#endif  // NESTOR_ENGINE_QUANT_FLOAT8_H_
