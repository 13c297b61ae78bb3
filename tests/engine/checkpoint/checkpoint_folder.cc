#include "tests/engine/checkpoint/checkpoint_folder.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/file.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/safetensors.h"
#include "gtest/gtest.h"

namespace nestor {

namespace fs = std::filesystem;

std::string GoldenFolder(std::string_view name) { return StrCat(NESTOR_TEST_DATA_DIR, "/golden/", name); }

std::string AbacusFolder() { return NESTOR_SOURCE_DIR "/models/abacus"; }

TemporaryFolder::TemporaryFolder() {
  path_ = testing::TempDir() + "nestor_XXXXXX";
  NESTOR_CHECK(mkdtemp(path_.data()) != nullptr) << path_;
}

TemporaryFolder::~TemporaryFolder() { fs::remove_all(path_); }

OwnedTensors ReadOwnedTensors(const std::string& path) {
  const auto file = SafetensorsFile::Open(path);
  NESTOR_CHECK(file.ok()) << file.status().message();
  OwnedTensors tensors;
  for (const auto& [name, tensor] : file->tensors()) {
    tensors[name] = {tensor.dtype, tensor.shape, {tensor.bytes.begin(), tensor.bytes.end()}};
  }
  return tensors;
}

void WriteOwnedTensors(const std::string& path, const OwnedTensors& tensors) {
  std::vector<TensorHeader> headers;
  std::vector<const OwnedTensor*> order;
  for (const auto& [name, tensor] : tensors) {
    headers.push_back({name, tensor.dtype, tensor.shape});
    order.push_back(&tensor);
  }
  const absl::Status status = WriteSafetensors(path, headers, [&](size_t i) { return order[i]->bytes; });
  NESTOR_CHECK(status.ok()) << status.message();
}

CheckpointFolder::CheckpointFolder(std::string_view golden) {
  for (const fs::directory_entry& entry : fs::directory_iterator(GoldenFolder(golden))) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("golden.")) fs::copy_file(entry.path(), file(name));
  }
}

void CheckpointFolder::Write(std::string_view name, std::string_view contents) {
  const absl::Status status = WriteFile(file(name), contents);
  NESTOR_CHECK(status.ok()) << status.message();
}

std::string CheckpointFolder::Read(std::string_view name) const {
  absl::StatusOr<std::string> contents = ReadFile(file(name));
  NESTOR_CHECK(contents.ok()) << contents.status().message();
  return *std::move(contents);
}

void CheckpointFolder::Remove(std::string_view name) { fs::remove_all(file(name)); }

void CheckpointFolder::EditJson(std::string_view name, const std::function<void(Json&)>& edit) {
  Json json = Json::parse(Read(name));
  edit(json);
  Write(name, json.dump());
}

void CheckpointFolder::EditTensors(const std::function<void(OwnedTensors&)>& edit) {
  const std::string path = file("model.safetensors");
  OwnedTensors tensors = ReadOwnedTensors(path);
  edit(tensors);
  WriteOwnedTensors(path, tensors);
}

std::string CheckpointFolder::OpenError() const {
  const auto checkpoint = Checkpoint::Open(path());
  return checkpoint.ok() ? "" : Without(std::string(checkpoint.status().message()), path() + "/");
}

std::string Without(std::string text, std::string_view part) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part)) text.erase(at, part.size());
  return text;
}

}  // namespace nestor
