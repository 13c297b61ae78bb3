// A contiguous range of indices on one axis of a tensor.
#ifndef NESTOR_ENGINE_BASE_EXTENT_H_
#define NESTOR_ENGINE_BASE_EXTENT_H_

#include <cstdint>
#include <vector>

namespace nestor {

struct Extent {
  int64_t begin = 0;
  int64_t count = 0;

  bool operator==(const Extent&) const = default;
};

// The indices a submodel keeps on one axis of a parent tensor, ascending; adjacent extents are always merged,
// so a plain prefix is exactly one extent.
using Extents = std::vector<Extent>;

inline int64_t TotalCount(const Extents& extents) {
  int64_t total = 0;
  for (const Extent& extent : extents) total += extent.count;
  return total;
}

// Appends, merging with the last extent where they touch. Empty extents vanish.
inline void AppendExtent(Extents& extents, Extent extent) {
  if (extent.count == 0) return;
  if (!extents.empty() && extents.back().begin + extents.back().count == extent.begin) {
    extents.back().count += extent.count;
  } else {
    extents.push_back(extent);
  }
}

}  // namespace nestor

#endif  // NESTOR_ENGINE_BASE_EXTENT_H_
