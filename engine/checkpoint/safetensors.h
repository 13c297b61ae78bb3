// The safetensors container: u64 little-endian header length, JSON header, tensor bytes. Read through a
// memory map, checked fully before any tensor is handed out.
#ifndef NESTOR_ENGINE_CHECKPOINT_SAFETENSORS_H_
#define NESTOR_ENGINE_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/file.h"
#include "engine/quant/dtype.h"

namespace nestor {

// A tensor inside a mapped file: row-major, contiguous, not aligned.
struct Tensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  absl::Span<const std::byte> bytes;

  int64_t element_count() const;
};

// "BF16 [10304, 2688]", for messages.
std::string Describe(const Tensor& tensor);
// "[10304, 2688]"
std::string DescribeShape(absl::Span<const int64_t> shape);

class SafetensorsFile {
 public:
  // Refuses: a file shorter than its header says, a header longer than 100 MB (the format's limit), bad JSON,
  // unknown dtypes, negative or overflowing shapes, offsets out of range, overlapping or not covering the
  // data, a length that is not shape × element size. Messages name file and tensor, what was expected and
  // what was found.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::string& path() const { return file_.path(); }

 private:
  SafetensorsFile(MappedFile file, std::map<std::string, Tensor> tensors);

  MappedFile file_;
  std::map<std::string, Tensor> tensors_;
};

// A tensor to be written.
struct TensorHeader {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

// Writes a file tensor by tensor: `bytes_of(i)` gives the bytes of tensors[i], shape × element size of them,
// and is asked once for each, in order, so that only one tensor need be in memory.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const TensorHeader> tensors,
                              const std::function<std::vector<std::byte>(size_t)>& bytes_of);

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_SAFETENSORS_H_
