// A fixed array of floats that starts as zeros and costs physical memory only where it was written.
#ifndef NESTOR_ENGINE_BACKEND_CPU_ZEROED_ARRAY_H_
#define NESTOR_ENGINE_BACKEND_CPU_ZEROED_ARRAY_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace nestor {

class ZeroedArray {
 public:
  explicit ZeroedArray(int64_t count)
      : data_(static_cast<float*>(std::calloc(count > 0 ? count : 1, sizeof(float)))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }

  float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float[], Free> data_;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_BACKEND_CPU_ZEROED_ARRAY_H_
