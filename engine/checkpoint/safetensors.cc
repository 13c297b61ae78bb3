#include "engine/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/untrusted_json.h"

namespace nestor {
namespace {

constexpr uint64_t kLengthBytes = 8;               // of the header's length, little-endian
constexpr uint64_t kHeaderBytesMax = 100'000'000;  // as in the reference implementation

// The product of the dimensions and the element size; nullopt where it does not fit or a dimension is
// negative.
std::optional<uint64_t> TensorBytes(DType dtype, absl::Span<const int64_t> shape) {
  uint64_t bytes = static_cast<uint64_t>(ByteSize(dtype));
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes))
      return std::nullopt;
  }
  return bytes;
}

// Reads one entry of the header.
class EntryReader {
 public:
  EntryReader(const std::string& path, const std::string& name, absl::Span<const std::byte> data)
      : path_(path), name_(name), data_(data) {}

  absl::StatusOr<Tensor> Read(const Json& entry) const {
    Tensor tensor;
    if (!entry.is_object()) return Error("an object", JsonExcerpt(entry));
    NESTOR_ASSIGN_OR_RETURN(tensor.dtype, ReadDType(Member(entry, "dtype")));
    NESTOR_ASSIGN_OR_RETURN(tensor.shape, ReadSizes(Member(entry, "shape"), "shape"));
    NESTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                            ReadSizes(Member(entry, "data_offsets"), "data_offsets"));
    if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<uint64_t>(offsets[1]) > data_.size()) {
      return Error(StrCat("data_offsets [begin, end] within ", data_.size(), " bytes of data"),
                   DescribeShape(offsets));
    }
    const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
    const uint64_t found = static_cast<uint64_t>(offsets[1] - offsets[0]);
    if (bytes != found) {
      return Error(StrCat(bytes ? StrCat(*bytes) : "a number of", " bytes for ", DTypeName(tensor.dtype), " ",
                          DescribeShape(tensor.shape)),
                   StrCat(found, " bytes"));
    }
    tensor.bytes = data_.subspan(offsets[0], found);
    return tensor;
  }

 private:
  static const Json& Member(const Json& entry, const char* key) {
    static const Json kNothing;
    const auto found = entry.find(key);
    return found == entry.end() ? kNothing : *found;
  }

  absl::StatusOr<DType> ReadDType(const Json& value) const {
    const std::optional<DType> dtype =
        value.is_string() ? DTypeFromName(value.get<std::string>()) : std::nullopt;
    if (!dtype) return Error("a dtype of F32, BF16, F16, F8_E4M3, U8", JsonExcerpt(value));
    return *dtype;
  }

  absl::StatusOr<std::vector<int64_t>> ReadSizes(const Json& value, std::string_view key) const {
    constexpr uint64_t kSizeMax = std::numeric_limits<int64_t>::max();
    std::vector<int64_t> sizes;
    bool good = value.is_array();
    if (good) {
      for (const Json& size : value) {
        good = good && size.is_number_unsigned() && size.get<uint64_t>() <= kSizeMax;
        if (good) sizes.push_back(size.get<int64_t>());
      }
    }
    if (!good) return Error(StrCat(key, " as a list of sizes"), JsonExcerpt(value));
    return sizes;
  }

  absl::Status Error(std::string_view expected, std::string_view found) const {
    return absl::InvalidArgumentError(
        StrCat(path_, ": tensor '", name_, "': expected ", expected, ", found ", found));
  }

  const std::string& path_;
  const std::string& name_;
  const absl::Span<const std::byte> data_;
};

// The header's JSON text.
absl::StatusOr<std::string_view> HeaderText(const MappedFile& file) {
  const absl::Span<const std::byte> bytes = file.bytes();
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) {
    return absl::InvalidArgumentError(
        StrCat(file.path(), ": expected a safetensors file of at least 8 bytes, found ", bytes.size()));
  }
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kHeaderBytesMax || length > bytes.size() - kLengthBytes) {
    return absl::InvalidArgumentError(StrCat(file.path(), ": expected a header of at most ",
                                             std::min<uint64_t>(kHeaderBytesMax, bytes.size() - kLengthBytes),
                                             " bytes, found a header length of ", length));
  }
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
}

// Tensors must tile the data: no overlap, no hole, nothing behind the last.
absl::Status CheckCoverage(const std::string& path, const std::map<std::string, Tensor>& tensors,
                           absl::Span<const std::byte> data) {
  std::vector<std::pair<absl::Span<const std::byte>, const std::string*>> spans;
  for (const auto& [name, tensor] : tensors) spans.push_back({tensor.bytes, &name});
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.data(), a.first.size()) < std::pair(b.first.data(), b.first.size());
  });
  const std::byte* end = data.data();
  for (const auto& [bytes, name] : spans) {
    if (bytes.data() != end) {
      return absl::InvalidArgumentError(
          StrCat(path, ": tensor '", *name, "': expected to begin at byte ", end - data.data(),
                 " of the data, found ", bytes.data() - data.data(),
                 bytes.data() < end ? " (it overlaps another tensor)" : " (a gap)"));
    }
    end += bytes.size();
  }
  if (end != data.data() + data.size()) {
    return absl::InvalidArgumentError(StrCat(path, ": expected ", end - data.data(),
                                             " bytes of data, as the header says, found ", data.size()));
  }
  return absl::OkStatus();
}

// The header of a file that holds the tensors in this order, padded so that the data begin aligned.
std::string WrittenHeader(absl::Span<const TensorHeader> tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const TensorHeader& tensor : tensors) {
    const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
    NESTOR_CHECK(bytes.has_value()) << tensor.name;
    header[tensor.name] = {{"dtype", std::string(DTypeName(tensor.dtype))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + *bytes}}};
    offset += *bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  return text;
}

}  // namespace

int64_t Tensor::element_count() const { return static_cast<int64_t>(bytes.size()) / ByteSize(dtype); }

std::string DescribeShape(absl::Span<const int64_t> shape) {
  std::string words = "[";
  for (const int64_t dimension : shape) StrAppend(&words, words.size() > 1 ? ", " : "", dimension);
  return words + "]";
}

std::string Describe(const Tensor& tensor) {
  return StrCat(DTypeName(tensor.dtype), " ", DescribeShape(tensor.shape));
}

SafetensorsFile::SafetensorsFile(MappedFile file, std::map<std::string, Tensor> tensors)
    : file_(std::move(file)), tensors_(std::move(tensors)) {}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  NESTOR_ASSIGN_OR_RETURN(const std::string_view header_text, HeaderText(file));
  NESTOR_ASSIGN_OR_RETURN(const Json header, ParseUntrustedJson(header_text, StrCat(path, ": header")));
  if (!header.is_object()) {
    return absl::InvalidArgumentError(
        StrCat(path, ": header: expected an object, found ", JsonExcerpt(header)));
  }
  const absl::Span<const std::byte> data = file.bytes().subspan(kLengthBytes + header_text.size());
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    NESTOR_ASSIGN_OR_RETURN(tensors[name], EntryReader(path, name, data).Read(entry));
  }
  NESTOR_RETURN_IF_ERROR(CheckCoverage(path, tensors, data));
  return SafetensorsFile(std::move(file), std::move(tensors));
}

absl::Status WriteSafetensors(const std::string& path, absl::Span<const TensorHeader> tensors,
                              const std::function<std::vector<std::byte>(size_t)>& bytes_of) {
  const std::string text = WrittenHeader(tensors);
  const uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&length), kLengthBytes);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (size_t i = 0; i < tensors.size() && file; ++i) {
    const std::vector<std::byte> bytes = bytes_of(i);
    NESTOR_CHECK(bytes.size() == TensorBytes(tensors[i].dtype, tensors[i].shape)) << tensors[i].name;
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  file.close();
  if (!file) return absl::FailedPreconditionError(StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace nestor
