#include "engine/model/executor.h"

#include <algorithm>
#include <numeric>

namespace nestor {

std::vector<int> WidthRank(const Model& model) {
  std::vector<int> order(model.num_submodels());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return model.submodels[a].hidden_size > model.submodels[b].hidden_size;
  });
  std::vector<int> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int>(i);
  return rank;
}

}  // namespace nestor
