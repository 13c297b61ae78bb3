// A folder for the files of one test.
#ifndef NESTOR_TESTS_ENGINE_BASE_TEMPORARY_FOLDER_H_
#define NESTOR_TESTS_ENGINE_BASE_TEMPORARY_FOLDER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "engine/base/str_cat.h"

namespace nestor {

// A folder that goes when the object goes.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int count = 0;
    path_ = StrCat(testing::TempDir(), "nestor_test_", getpid(), "_", count++);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace nestor

#endif  // NESTOR_TESTS_ENGINE_BASE_TEMPORARY_FOLDER_H_
