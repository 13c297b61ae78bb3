#include "engine/quant/float8.h"

#include <bit>
#include <cmath>
#include <limits>

namespace nestor {
namespace {

// seeeemmm, bias 7: exponent 0 is mantissa · 2^-9, else (8 + mantissa) · 2^(exponent - 10).
constexpr float ValueOf(unsigned code) {
  const unsigned exponent = (code >> 3) & 0xfu;
  const unsigned mantissa = code & 7u;
  if ((code & 0x7fu) == 0x7fu) return std::numeric_limits<float>::quiet_NaN();
  float value = static_cast<float>(exponent == 0 ? mantissa : 8 + mantissa);
  for (unsigned power = exponent == 0 ? 1 : exponent; power < 10; ++power) value /= 2;
  for (unsigned power = 10; power < exponent; ++power) value *= 2;
  return (code & 0x80u) != 0 ? -value : value;
}

constexpr std::array<float, 256> AllValues() {
  std::array<float, 256> values{};
  for (unsigned code = 0; code < values.size(); ++code) values[code] = ValueOf(code);
  return values;
}

}  // namespace

constexpr std::array<float, 256> kE4M3Values = AllValues();

std::byte EncodeE4M3(float value) {
  const unsigned sign = std::signbit(value) ? 0x80u : 0u;
  if (std::isnan(value)) return std::byte(sign | 0x7fu);
  const float magnitude = std::fabs(value);
  if (magnitude >= kE4M3Max) return std::byte(sign | 0x7eu);
  // The codes of magnitudes below 448 are a whole number of steps of their binade, and consecutive. Below
  // 2^-6 the steps are those of the subnormals. Division by a power of two is exact, and the processor's
  // rounding mode is to nearest, ties to even.
  const int exponent = magnitude < 0x1p-6f ? -6 : std::ilogb(magnitude);
  const float steps = std::nearbyint(std::ldexp(magnitude, 3 - exponent));
  const unsigned code = static_cast<unsigned>(exponent + 6) * 8 + static_cast<unsigned>(steps);
  return std::byte(sign | code);
}

}  // namespace nestor
