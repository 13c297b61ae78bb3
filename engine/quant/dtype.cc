#include "engine/quant/dtype.h"

#include <bit>
#include <cstring>

namespace nestor {
namespace {

float WidenHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa · 2^-24, exact in float32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide_exponent = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13));
}

}  // namespace

std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kU8:
      return "U8";
  }
  return "";
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3, DType::kU8}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

int64_t ByteSize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kF8E4M3:
    case DType::kU8:
      return 1;
  }
  return 0;
}

bool IsFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16; }

void WidenToFloat(DType dtype, const std::byte* from, int64_t count, float* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  // Safetensors aligns nothing: read through memcpy, which compiles to plain loads.
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, from + 2 * i, sizeof(half));
    to[i] = dtype == DType::kBF16 ? std::bit_cast<float>(static_cast<uint32_t>(half) << 16) : WidenHalf(half);
  }
}

}  // namespace nestor
