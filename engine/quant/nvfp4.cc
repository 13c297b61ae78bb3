#include "engine/quant/nvfp4.h"

#include <cmath>

#include "engine/quant/float8.h"

namespace nestor {

uint8_t EncodeE2M1(float value) {
  // The bounds between neighbouring magnitudes; on a bound the even code wins, which is the lower one at
  // every other bound.
  constexpr std::array<float, 7> kBounds = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const float magnitude = std::fabs(value);
  uint8_t code = 0;
  while (code < kBounds.size() &&
         (magnitude > kBounds[code] || (magnitude == kBounds[code] && code % 2 == 1))) {
    ++code;
  }
  return std::signbit(value) ? static_cast<uint8_t>(code | 8u) : code;
}

void WidenNvfp4(const std::byte* codes, const std::byte* block_scales, float scale, int64_t begin,
                int64_t count, float* to) {
  for (int64_t block = begin; block < begin + count; block += kNvfp4Block) {
    const float block_scale = DecodeE4M3(block_scales[block / kNvfp4Block]);
    for (int64_t i = 0; i < kNvfp4Block; i += 2) {
      const auto pair = std::to_integer<unsigned>(codes[(block + i) / 2]);
      *to++ = kE2M1Values[pair & 0xfu] * block_scale * scale;
      *to++ = kE2M1Values[pair >> 4] * block_scale * scale;
    }
  }
}

}  // namespace nestor
