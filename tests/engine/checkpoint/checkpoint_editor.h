// A copy of a golden checkpoint in a folder of its own, to be changed or broken by a test.
#ifndef NESTOR_TESTS_ENGINE_CHECKPOINT_CHECKPOINT_EDITOR_H_
#define NESTOR_TESTS_ENGINE_CHECKPOINT_CHECKPOINT_EDITOR_H_

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/check.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/base/temporary_folder.h"

namespace nestor {

// The folder of one golden checkpoint, "moe".
inline std::string GoldenFolder(std::string_view name) {
  return StrCat(NESTOR_TEST_DATA_DIR, "/golden/", name);
}

// The small model that is part of the project.
inline std::string AbacusFolder() { return NESTOR_SOURCE_DIR "/models/abacus"; }

// The bytes of a safetensors file with this header and data.
inline std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return StrCat(bytes, header, data);
}

class CheckpointEditor {
 public:
  // Copies the checkpoint of `folder`.
  explicit CheckpointEditor(const std::string& folder) {
    std::filesystem::copy(folder, copy_.path(), std::filesystem::copy_options::recursive);
  }

  const std::string& directory() const { return copy_.path(); }
  std::string PathOf(std::string_view file) const { return StrCat(directory(), "/", file); }

  void Write(std::string_view file, std::string_view contents) {
    NESTOR_CHECK(WriteFile(PathOf(file), contents).ok()) << file;
  }
  void Remove(std::string_view file) { std::filesystem::remove_all(PathOf(file)); }

  void EditBytes(std::string_view file, const std::function<void(std::string&)>& edit) {
    std::string bytes = ReadFile(PathOf(file)).value();
    edit(bytes);
    Write(file, bytes);
  }

  void EditJson(std::string_view file, const std::function<void(Json&)>& edit) {
    EditBytes(file, [&](std::string& text) {
      Json json = ParseJson(text, file).value();
      edit(json);
      text = json.dump();
    });
  }

  // Changes the header and the data of a safetensors file; the header's length follows.
  void EditSafetensors(std::string_view file,
                       const std::function<void(Json& header, std::string& data)>& edit) {
    EditBytes(file, [&](std::string& bytes) {
      uint64_t length = 0;
      std::memcpy(&length, bytes.data(), sizeof(length));
      Json header = ParseJson(std::string_view(bytes).substr(sizeof(length), length), file).value();
      std::string data = bytes.substr(sizeof(length) + length);
      edit(header, data);
      bytes = SafetensorsBytes(header.dump(), data);
    });
  }

  // Why the folder is refused, as code and message with paths relative to it; "OK" where it is not.
  std::string Refusal() const {
    std::string text = Checkpoint::Open(directory()).status().ToString();
    const std::string prefix = directory() + "/";
    for (size_t at = text.find(prefix); at != text.npos; at = text.find(prefix))
      text.erase(at, prefix.size());
    return text;
  }

 private:
  TemporaryFolder copy_;
};

}  // namespace nestor

#endif  // NESTOR_TESTS_ENGINE_CHECKPOINT_CHECKPOINT_EDITOR_H_
