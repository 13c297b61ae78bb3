// Files: a read-only memory map and whole-file helpers. Errors name the path.
#ifndef NESTOR_ENGINE_BASE_FILE_H_
#define NESTOR_ENGINE_BASE_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace nestor {

// A file mapped read-only and shared: pages are loaded on first use and belong to the page cache.
// Move-only; the bytes stay valid and at the same address until destruction, also across moves.
class MappedFile {
 public:
  // NOT_FOUND where the path does not exist; an empty file is a valid, empty map.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  absl::Span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size);

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

absl::StatusOr<std::string> ReadFile(const std::string& path);
absl::Status WriteFile(const std::string& path, std::string_view contents);
bool FileExists(const std::string& path);

}  // namespace nestor

#endif  // NESTOR_ENGINE_BASE_FILE_H_
