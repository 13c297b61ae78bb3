#include "engine/backend/cpu/cpu_operations.h"

#include "tests/engine/backend/operations_test.h"

namespace nestor {
namespace {

struct CpuBackend {
  using Ops = CpuOperations;

  static std::unique_ptr<Ops> Create(const ModelConfig& config, int slots, int pages) {
    return std::make_unique<Ops>(config, slots, pages);
  }
  static void Write(RowBuffer buffer, int64_t row, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), buffer.row(row));
  }
  static std::vector<float> Read(RowBuffer buffer, int64_t row, int64_t width) {
    return {buffer.row(row), buffer.row(row) + width};
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, OperationsTest, CpuBackend);

}  // namespace
}  // namespace nestor
