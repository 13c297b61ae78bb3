#include "engine/base/file.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "engine/base/str_cat.h"
#include "gtest/gtest.h"
#include "tests/engine/base/temporary_folder.h"

namespace nestor {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  static std::string Text(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  std::string PathOf(std::string_view name) const { return StrCat(folder_, "/", name); }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(FileTest, WritesAndReadsAnyBytes) {
  const std::string bytes("a\0\r\n\xff", 5);
  ASSERT_TRUE(WriteFile(PathOf("x"), "longer than what follows").ok());
  ASSERT_TRUE(WriteFile(PathOf("x"), bytes).ok());
  EXPECT_EQ(ReadFile(PathOf("x")).value(), bytes);
  EXPECT_EQ(Text(MappedFile::Open(PathOf("x")).value()), bytes);
}

TEST_F(FileTest, AnEmptyFileIsEmpty) {
  ASSERT_TRUE(WriteFile(PathOf("x"), "").ok());
  EXPECT_EQ(ReadFile(PathOf("x")).value(), "");
  EXPECT_TRUE(MappedFile::Open(PathOf("x"))->bytes().empty());
}

TEST_F(FileTest, AbsentFilesAreNotFound) {
  const std::string message = PathOf("x") + ": cannot be opened: No such file or directory";
  EXPECT_EQ(ReadFile(PathOf("x")).status(), absl::NotFoundError(message));
  EXPECT_EQ(MappedFile::Open(PathOf("x")).status(), absl::NotFoundError(message));
  EXPECT_EQ(WriteFile(PathOf("no/x"), "").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(FileExists(PathOf("x")));
}

TEST_F(FileTest, AFolderIsNoFile) {
  EXPECT_EQ(ReadFile(folder_).status(), absl::FailedPreconditionError(folder_ + ": expected a regular file"));
  EXPECT_EQ(MappedFile::Open(folder_).status(),
            absl::FailedPreconditionError(folder_ + ": expected a regular file"));
  EXPECT_EQ(WriteFile(folder_, "x"),
            absl::FailedPreconditionError(folder_ + ": cannot be written: Is a directory"));
  EXPECT_TRUE(FileExists(folder_));
}

TEST_F(FileTest, APipeIsNoFile) {
  ASSERT_EQ(mkfifo(PathOf("pipe").c_str(), 0600), 0);
  const absl::Status expected = absl::FailedPreconditionError(PathOf("pipe") + ": expected a regular file");
  EXPECT_EQ(ReadFile(PathOf("pipe")).status(), expected);  // and does not wait for somebody to write into it
  EXPECT_EQ(MappedFile::Open(PathOf("pipe")).status(), expected);
}

TEST_F(FileTest, BytesStayWhereTheyAreAcrossMoves) {
  ASSERT_TRUE(WriteFile(PathOf("x"), "one").ok());
  ASSERT_TRUE(WriteFile(PathOf("y"), "two").ok());
  MappedFile file = MappedFile::Open(PathOf("x")).value();
  const std::byte* const data = file.bytes().data();
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_EQ(moved.path(), PathOf("x"));
  MappedFile other = MappedFile::Open(PathOf("y")).value();
  other = std::move(moved);
  EXPECT_EQ(other.bytes().data(), data);
  EXPECT_EQ(Text(other), "one");
}

TEST_F(FileTest, TheMapOutlivesTheName) {
  ASSERT_TRUE(WriteFile(PathOf("x"), "kept").ok());
  const MappedFile file = MappedFile::Open(PathOf("x")).value();
  fs::remove(PathOf("x"));
  EXPECT_EQ(Text(file), "kept");
}

}  // namespace
}  // namespace nestor
