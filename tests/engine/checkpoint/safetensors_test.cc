#include "engine/checkpoint/safetensors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"

namespace nestor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/x.safetensors"; }

  // Why a file with these bytes is refused, without its path; "OK" where it is not.
  std::string Refusal(std::string_view bytes) const {
    EXPECT_TRUE(WriteFile(path(), bytes).ok());
    const std::string text = SafetensorsFile::Open(path()).status().ToString();
    const size_t at = text.find(path());
    return at == text.npos ? text : StrCat(text.substr(0, at), "x", text.substr(at + path().size()));
  }

  // The same for a file of one tensor `t` with 8 bytes of data.
  std::string TensorRefusal(std::string_view entry) const {
    return Refusal(SafetensorsBytes(StrCat("{\"t\":", entry, "}"), "12345678"));
  }

  TemporaryFolder folder_;
};

TEST_F(SafetensorsTest, ReadsTensorsAndIgnoresMetadata) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[4,12]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"z":{"dtype":"U8","shape":[0],"data_offsets":[12,12]}})";
  ASSERT_EQ(Refusal(SafetensorsBytes(header, "abcdefghijkl")), "OK");
  const SafetensorsFile file = SafetensorsFile::Open(path()).value();
  ASSERT_EQ(file.tensors().size(), 3u);
  const Tensor& tensor = file.tensors().at("b");
  EXPECT_EQ(tensor.dtype, DType::kBF16);
  EXPECT_THAT(tensor.shape, ElementsAre(2, 2));
  EXPECT_EQ(tensor.element_count(), 4);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()), "efghijkl");
  EXPECT_EQ(file.tensors().at("a").element_count(), 1);
  EXPECT_EQ(file.tensors().at("z").element_count(), 0);
  EXPECT_EQ(Describe(tensor), "BF16 [2, 2]");
}

TEST_F(SafetensorsTest, BytesKeepTheirAddressAcrossMoves) {
  ASSERT_EQ(TensorRefusal(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "OK");
  SafetensorsFile file = SafetensorsFile::Open(path()).value();
  const std::byte* const before = file.tensors().at("t").bytes.data();
  const SafetensorsFile moved = std::move(file);
  EXPECT_EQ(moved.tensors().at("t").bytes.data(), before);
}

TEST_F(SafetensorsTest, RefusesWhatIsNoSafetensorsFile) {
  EXPECT_EQ(Refusal(""), "INVALID_ARGUMENT: x: expected a safetensors file of at least 8 bytes, found 0");
  EXPECT_EQ(Refusal("1234567"),
            "INVALID_ARGUMENT: x: expected a safetensors file of at least 8 bytes, found 7");
  EXPECT_THAT(Refusal(SafetensorsBytes("{nonsense}", "")),
              HasSubstr("INVALID_ARGUMENT: x: header: expected JSON, found an error at byte 3"));
  EXPECT_EQ(Refusal(SafetensorsBytes("[1]", "")),
            "INVALID_ARGUMENT: x: header: expected an object, found [1]");
  EXPECT_THAT(SafetensorsFile::Open(folder_.path() + "/absent").status().ToString(),
              HasSubstr(StrCat("NOT_FOUND: ", folder_.path(), "/absent")));
  EXPECT_EQ(SafetensorsFile::Open(folder_.path()).status().message(),
            folder_.path() + ": expected a regular file");
}

TEST_F(SafetensorsTest, RefusesHeaderLengths) {
  const auto with_length = [](uint64_t length) {
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
    return StrCat(bytes, "{}");
  };
  EXPECT_EQ(
      Refusal(with_length(10'000'000'000)),
      "INVALID_ARGUMENT: x: expected a header of at most 2 bytes, found a header length of 10000000000");
  EXPECT_EQ(Refusal(with_length(UINT64_MAX)),
            "INVALID_ARGUMENT: x: expected a header of at most 2 bytes, found a header length of "
            "18446744073709551615");
  EXPECT_EQ(Refusal(with_length(2)), "OK");
}

// A file that is really 10 GB long (sparse) is refused all the same, without reading it.
TEST_F(SafetensorsTest, RefusesHugeHeaderOfHugeFile) {
  const uint64_t length = 10'000'000'000;
  ASSERT_TRUE(WriteFile(path(), std::string(reinterpret_cast<const char*>(&length), sizeof(length))).ok());
  std::error_code error;
  std::filesystem::resize_file(path(), length + 100, error);
  if (error) GTEST_SKIP() << "no sparse file of 10 GB here: " << error.message();
  EXPECT_EQ(SafetensorsFile::Open(path()).status().message(),
            path() + ": expected a header of at most 100000000 bytes, found a header length of 10000000000");
}

TEST_F(SafetensorsTest, RefusesTruncatedData) {
  const std::string entry = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(Refusal(SafetensorsBytes(entry, "1234567")),
            "INVALID_ARGUMENT: x: tensor 't': expected data_offsets [begin, end] within 7 bytes of data, "
            "found [0, 8]");
  EXPECT_EQ(Refusal(SafetensorsBytes(entry, "123456789")),
            "INVALID_ARGUMENT: x: expected 8 bytes of data, as the header says, found 9");
}

TEST_F(SafetensorsTest, RefusesBadEntries) {
  const std::string where("INVALID_ARGUMENT: x: tensor 't': expected ");
  EXPECT_EQ(TensorRefusal("7"), where + "an object, found 7");
  EXPECT_EQ(TensorRefusal(R"({"shape":[2],"data_offsets":[0,8]})"),
            where + "a dtype of F32, BF16, F16, F8_E4M3, U8, found null");
  EXPECT_EQ(TensorRefusal(R"({"dtype":"C128","shape":[2],"data_offsets":[0,8]})"),
            where + R"(a dtype of F32, BF16, F16, F8_E4M3, U8, found "C128")");
  EXPECT_EQ(TensorRefusal(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
            where + "shape as a list of sizes, found [-2]");
  EXPECT_EQ(TensorRefusal(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"),
            where + "shape as a list of sizes, found [2.0]");
  EXPECT_EQ(TensorRefusal(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})"),
            where + "shape as a list of sizes, found [18446744073709551615]");
  EXPECT_EQ(TensorRefusal(R"({"dtype":"F32","shape":[2]})"),
            where + "data_offsets as a list of sizes, found null");
  EXPECT_EQ(TensorRefusal(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
            where + "12 bytes for F32 [3], found 8 bytes");
}

TEST_F(SafetensorsTest, RefusesShapesThatOverflow) {
  EXPECT_EQ(TensorRefusal(R"({"dtype":"F32","shape":[4611686018427387905,4],"data_offsets":[0,8]})"),
            "INVALID_ARGUMENT: x: tensor 't': expected a number of bytes for F32 [4611686018427387905, 4], "
            "found 8 bytes");
}

TEST_F(SafetensorsTest, RefusesOffsets) {
  const std::string where =
      "INVALID_ARGUMENT: x: tensor 't': expected data_offsets [begin, end] within 8 bytes of data, found ";
  const auto with_offsets = [&](std::string_view offsets) {
    return TensorRefusal(StrCat(R"({"dtype":"F32","shape":[2],"data_offsets":)", offsets, "}"));
  };
  EXPECT_EQ(with_offsets("[0,16]"), where + "[0, 16]");
  EXPECT_EQ(with_offsets("[8,0]"), where + "[8, 0]");
  EXPECT_EQ(with_offsets("[0,4,8]"), where + "[0, 4, 8]");
  EXPECT_EQ(with_offsets("[9223372036854775800,9223372036854775807]"),
            where + "[9223372036854775800, 9223372036854775807]");
}

TEST_F(SafetensorsTest, RefusesOverlapAndGap) {
  const auto two = [&](std::string_view second) {
    return Refusal(SafetensorsBytes(StrCat(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)",
                                           R"("b":{"dtype":"U8","shape":[4],"data_offsets":)", second, "}}"),
                                    "123456789"));
  };
  EXPECT_EQ(two("[2,6]"),
            "INVALID_ARGUMENT: x: tensor 'b': expected to begin at byte 4 of the data, found 2 (it overlaps "
            "another tensor)");
  EXPECT_EQ(two("[5,9]"),
            "INVALID_ARGUMENT: x: tensor 'b': expected to begin at byte 4 of the data, found 5 (a gap)");
}

TEST_F(SafetensorsTest, RefusesDeepNesting) {
  const std::string deep = StrCat(std::string(1'000'000, '['), std::string(1'000'000, ']'));
  EXPECT_EQ(TensorRefusal(StrCat(R"({"dtype":)", deep, "}")),
            "INVALID_ARGUMENT: x: header: expected JSON nested at most 100 deep, found 1000002");
}

TEST_F(SafetensorsTest, WritesTensorByTensor) {
  const std::vector<TensorHeader> tensors = {{"second", DType::kF32, {2, 1}}, {"first", DType::kU8, {3}}};
  std::vector<size_t> asked;
  const auto bytes_of = [&](size_t index) {
    asked.push_back(index);
    return std::vector<std::byte>(index == 0 ? 8 : 3, std::byte{static_cast<unsigned char>('a' + index)});
  };
  ASSERT_TRUE(WriteSafetensors(path(), tensors, bytes_of).ok());
  EXPECT_THAT(asked, ElementsAre(0u, 1u));
  const SafetensorsFile file = SafetensorsFile::Open(path()).value();
  EXPECT_EQ(Describe(file.tensors().at("second")), "F32 [2, 1]");
  EXPECT_EQ(file.tensors().at("second").bytes[7], std::byte{'a'});
  EXPECT_EQ(file.tensors().at("first").bytes[0], std::byte{'b'});
}

TEST_F(SafetensorsTest, WritingReportsThePath) {
  const auto none = [](size_t) { return std::vector<std::byte>(); };
  EXPECT_EQ(WriteSafetensors(folder_.path() + "/no/x", {}, none).message(),
            folder_.path() + "/no/x: cannot be written");
}

}  // namespace
}  // namespace nestor
