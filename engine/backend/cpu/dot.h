// The reduction all reference kernels share.
#ifndef NESTOR_ENGINE_BACKEND_CPU_DOT_H_
#define NESTOR_ENGINE_BACKEND_CPU_DOT_H_

#include <cstdint>

namespace nestor {

// Σ a[i]·b[i] in a fixed order that depends on `count` alone: 16 interleaved partial sums (which compilers
// turn into vector registers without reordering anything), then a tree.
inline float Dot(const float* a, const float* b, int64_t count) {
  constexpr int kLanes = 16;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (int lane = 0; i < count; ++i, ++lane) lanes[lane] += a[i] * b[i];
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace nestor

#endif  // NESTOR_ENGINE_BACKEND_CPU_DOT_H_
