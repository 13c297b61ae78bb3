// A copy of a checkpoint folder that a test may break.
#ifndef NESTOR_TESTS_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H_
#define NESTOR_TESTS_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/checkpoint/checkpoint.h"

namespace nestor {

// "…/tests/data/golden/moe"
std::string GoldenFolder(std::string_view name);
std::string AbacusFolder();

// A folder of its own below the test's temporary folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// A tensor that owns its bytes.
struct OwnedTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};
using OwnedTensors = std::map<std::string, OwnedTensor>;

OwnedTensors ReadOwnedTensors(const std::string& path);
void WriteOwnedTensors(const std::string& path, const OwnedTensors& tensors);

// Copies a golden checkpoint (config.json, elastic.json, weights), then edits the copy.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string_view golden);

  const std::string& path() const { return folder_.path(); }
  std::string file(std::string_view name) const { return folder_.file(name); }

  void Write(std::string_view name, std::string_view contents);
  std::string Read(std::string_view name) const;
  void Remove(std::string_view name);
  void EditJson(std::string_view name, const std::function<void(Json&)>& edit);
  // Rewrites model.safetensors.
  void EditTensors(const std::function<void(OwnedTensors&)>& edit);

  // The message of Checkpoint::Open without the folder's own path: "config.json: key …". "" where it opens.
  std::string OpenError() const;

 private:
  TemporaryFolder folder_;
};

// `text` without every occurrence of `part`.
std::string Without(std::string text, std::string_view part);

}  // namespace nestor

#endif  // NESTOR_TESTS_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H_
