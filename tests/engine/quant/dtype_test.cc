#include "engine/quant/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace nestor {
namespace {

constexpr int kValues = 1 << 16;

// Every 16-bit pattern as stored, from an odd address: safetensors aligns nothing.
std::vector<float> WidenAll(DType dtype) {
  std::vector<std::byte> stored(1 + 2 * kValues);
  for (int bits = 0; bits < kValues; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    std::memcpy(&stored[1 + 2 * bits], &half, sizeof(half));
  }
  std::vector<float> wide(kValues);
  WidenToFloat(dtype, &stored[1], kValues, wide.data());
  return wide;
}

// IEEE 754 by its definition: ±1.mantissa · 2^(exponent - bias), in double precision.
double FloatOfBits(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double fraction = (bits & ((1u << mantissa_bits) - 1)) / std::pow(2.0, mantissa_bits);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * fraction * std::pow(2.0, 1 - bias);
  return sign * (1 + fraction) * std::pow(2.0, exponent - bias);
}

void ExpectWidens(DType dtype, int exponent_bits, int mantissa_bits) {
  const std::vector<float> wide = WidenAll(dtype);
  for (int bits = 0; bits < kValues; ++bits) {
    const double expected = FloatOfBits(bits, exponent_bits, mantissa_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[bits])) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide[bits]), expected) << bits;
    ASSERT_EQ(std::signbit(wide[bits]), std::signbit(expected)) << bits;
  }
}

TEST(DTypeTest, WidensEveryF16) { ExpectWidens(DType::kF16, 5, 10); }

TEST(DTypeTest, WidensEveryBF16) { ExpectWidens(DType::kBF16, 8, 7); }

TEST(DTypeTest, CopiesF32BitForBit) {
  const std::vector<uint32_t> bits = {0, 1, 0x80000000, 0x3f800001, 0x7f800000, 0xff7fffff, 0x7fc00123};
  std::vector<std::byte> stored(1 + 4 * bits.size());
  std::memcpy(&stored[1], bits.data(), 4 * bits.size());
  std::vector<float> wide(bits.size());
  WidenToFloat(DType::kF32, &stored[1], static_cast<int64_t>(bits.size()), wide.data());
  EXPECT_EQ(std::memcmp(wide.data(), bits.data(), 4 * bits.size()), 0);
}

TEST(DTypeTest, NamesGoBothWays) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3, DType::kU8}) {
    EXPECT_EQ(DTypeFromName(DTypeName(dtype)), dtype);
  }
  for (const char* name : {"", "f32", "F64", "BF16 ", "I8", "F8_E5M2"}) {
    EXPECT_EQ(DTypeFromName(name), std::nullopt) << name;
  }
}

TEST(DTypeTest, SizesAndKinds) {
  EXPECT_EQ(ByteSize(DType::kF32), 4);
  EXPECT_EQ(ByteSize(DType::kBF16), 2);
  EXPECT_EQ(ByteSize(DType::kF16), 2);
  EXPECT_EQ(ByteSize(DType::kF8E4M3), 1);
  EXPECT_EQ(ByteSize(DType::kU8), 1);
  EXPECT_TRUE(IsFloat(DType::kF32) && IsFloat(DType::kBF16) && IsFloat(DType::kF16));
  EXPECT_FALSE(IsFloat(DType::kF8E4M3) || IsFloat(DType::kU8));
}

}  // namespace
}  // namespace nestor
