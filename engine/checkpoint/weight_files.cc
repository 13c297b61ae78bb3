#include "engine/checkpoint/weight_files.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/untrusted_json.h"

namespace nestor {
namespace {

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// model.safetensors.index.json: the files, the tensors each must hold, and the bytes of all of them together.
struct WeightIndex {
  std::map<std::string, std::set<std::string>> files;
  Json total_size;  // null where the index does not say
};

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == name.npos;
}

absl::StatusOr<WeightIndex> ReadIndex(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const Json json, ReadUntrustedJson(path));
  const Json map = json.is_object() ? json.value("weight_map", Json()) : Json();
  if (!map.is_object()) {
    return absl::InvalidArgumentError(
        StrCat(path, ": key 'weight_map': expected an object, found ", JsonExcerpt(map)));
  }
  WeightIndex index;
  for (const auto& [tensor, file] : map.items()) {
    if (!file.is_string() || !IsPlainFileName(file.get<std::string>())) {
      return absl::InvalidArgumentError(StrCat(path, ": key 'weight_map.", tensor,
                                               "': expected the name of a file in the folder, found ",
                                               JsonExcerpt(file)));
    }
    index.files[file.get<std::string>()].insert(tensor);
  }
  const Json metadata = json.value("metadata", Json());
  if (metadata.is_object()) index.total_size = metadata.value("total_size", Json());
  return index;
}

// A shard holds exactly the tensors the index gives it.
absl::Status CheckShard(const SafetensorsFile& file, const std::set<std::string>& expected) {
  for (const auto& [name, tensor] : file.tensors()) {
    if (!expected.contains(name)) {
      return absl::InvalidArgumentError(StrCat(file.path(), ": tensor '", name,
                                               "': expected only tensors that the index maps to this file"));
    }
  }
  for (const std::string& name : expected) {
    if (!file.tensors().contains(name)) {
      return absl::InvalidArgumentError(
          StrCat(file.path(), ": tensor '", name, "': expected here by the index, found nothing"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SafetensorsFile>> OpenShards(const std::string& directory) {
  const std::string path = StrCat(directory, "/", kIndexFile);
  NESTOR_ASSIGN_OR_RETURN(const WeightIndex index, ReadIndex(path));
  std::vector<SafetensorsFile> files;
  size_t bytes = 0;
  for (const auto& [name, tensors] : index.files) {
    NESTOR_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(StrCat(directory, "/", name)));
    NESTOR_RETURN_IF_ERROR(CheckShard(file, tensors));
    for (const auto& [tensor_name, tensor] : file.tensors()) bytes += tensor.bytes.size();
    files.push_back(std::move(file));
  }
  if (!index.total_size.is_null() && index.total_size != bytes) {
    return absl::InvalidArgumentError(StrCat(path, ": key 'metadata.total_size': expected ", bytes,
                                             ", the bytes of all tensors, found ",
                                             JsonExcerpt(index.total_size)));
  }
  return files;
}

}  // namespace

absl::StatusOr<std::vector<SafetensorsFile>> OpenWeightFiles(const std::string& directory) {
  if (FileExists(StrCat(directory, "/", kIndexFile))) return OpenShards(directory);
  const std::string path = StrCat(directory, "/", kSingleFile);
  if (!FileExists(path)) {
    return absl::NotFoundError(
        StrCat(directory, ": expected ", kSingleFile, " or ", kIndexFile, ", found neither"));
  }
  NESTOR_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  std::vector<SafetensorsFile> files;
  files.push_back(std::move(file));
  return files;
}

}  // namespace nestor
