#include "engine/checkpoint/slice.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/slice_config.h"

namespace nestor {
namespace {

namespace fs = std::filesystem;

// Files that belong to the model as a whole and are copied as they are.
constexpr const char* kCopiedFiles[] = {
    "tokenizer.json",         "tokenizer_config.json",       "special_tokens_map.json", "chat_template.jinja",
    "generation_config.json", "configuration_nemotron_h.py", "modeling_nemotron_h.py"};

// The kept elements of a tensor of up to three dimensions, side by side.
std::vector<std::byte> Gather(const Tensor& tensor, const std::vector<Extents>& kept) {
  const int64_t element = ByteSize(tensor.dtype);
  std::vector<std::byte> bytes;
  // Recursion over the dimensions; the last one is copied an extent at a time.
  const auto gather = [&](const auto& self, size_t dimension, int64_t offset) -> void {
    int64_t stride = element;
    for (size_t i = dimension + 1; i < tensor.shape.size(); ++i) stride *= tensor.shape[i];
    for (const Extent& extent : kept[dimension]) {
      const int64_t begin = offset + extent.begin * stride;
      if (dimension + 1 == tensor.shape.size()) {
        bytes.insert(bytes.end(), tensor.bytes.data() + begin,
                     tensor.bytes.data() + begin + extent.count * stride);
      } else {
        for (int64_t i = 0; i < extent.count; ++i) self(self, dimension + 1, begin + i * stride);
      }
    }
  };
  gather(gather, 0, 0);
  return bytes;
}

absl::Status WriteWeights(const Checkpoint& checkpoint, const SubmodelShape& submodel,
                          const std::string& path) {
  const ModelConfig& config = checkpoint.config();
  std::vector<int> new_index;  // parent layer -> layer of the slice
  int next = 0;
  for (const LayerShape& layer : submodel.layers) new_index.push_back(layer.active ? next++ : -1);
  std::vector<TensorSpec> specs;
  std::vector<TensorHeader> headers;
  for (TensorSpec& spec : TensorSchema(config)) {
    if (!Uses(submodel, spec)) continue;
    const int layer = spec.layer < 0 ? -1 : new_index[spec.layer];
    headers.push_back({TensorName(spec.role, layer, spec.expert), checkpoint.tensor(spec.name).dtype,
                       ShapeOf(spec, config, submodel)});
    specs.push_back(std::move(spec));
  }
  return WriteSafetensors(path, headers, [&](size_t index) {
    const TensorSpec& spec = specs[index];
    std::vector<Extents> kept;
    for (const Axis axis : spec.axes) kept.push_back(Kept(axis, spec.layer, config, submodel));
    return Gather(checkpoint.tensor(spec.name), kept);
  });
}

absl::Status FileSystemError(const std::string& path, const std::error_code& error) {
  return absl::FailedPreconditionError(StrCat(path, ": ", error.message()));
}

absl::Status WriteFolder(const Checkpoint& checkpoint, const SubmodelShape& submodel,
                         const std::string& folder) {
  NESTOR_ASSIGN_OR_RETURN(const Json config, SliceConfig(checkpoint, submodel));
  NESTOR_RETURN_IF_ERROR(WriteFile(folder + "/config.json", config.dump(2) + "\n"));
  if (checkpoint.has_elastic_descriptor()) {
    NESTOR_ASSIGN_OR_RETURN(const Json descriptor, SliceDescriptor(checkpoint, submodel));
    NESTOR_RETURN_IF_ERROR(WriteFile(folder + "/elastic.json", descriptor.dump(2) + "\n"));
  }
  NESTOR_RETURN_IF_ERROR(WriteWeights(checkpoint, submodel, folder + "/model.safetensors"));
  for (const char* name : kCopiedFiles) {
    const std::string source = StrCat(checkpoint.directory(), "/", name);
    std::error_code error;
    if (FileExists(source) && !fs::copy_file(source, StrCat(folder, "/", name), error)) {
      return FileSystemError(source, error);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const SubmodelShape*> FindSubmodel(const Checkpoint& checkpoint, std::string_view name) {
  std::string known;
  for (const SubmodelShape& submodel : checkpoint.elastic().submodels) {
    if (submodel.name == name) return &submodel;
    StrAppend(&known, known.empty() ? "" : ", ", submodel.name);
  }
  return absl::NotFoundError(
      StrCat(checkpoint.directory(), ": expected a submodel of ", known, ", found '", name, "'"));
}

}  // namespace

absl::Status WriteSlice(const Checkpoint& checkpoint, std::string_view submodel_name,
                        const std::string& output_directory) {
  NESTOR_ASSIGN_OR_RETURN(const SubmodelShape* const submodel, FindSubmodel(checkpoint, submodel_name));
  std::error_code error;
  const fs::file_status found = fs::status(output_directory, error);
  const bool is_free =
      !fs::exists(found) || (fs::is_directory(found) && fs::is_empty(output_directory, error));
  if (!is_free) {
    return absl::FailedPreconditionError(
        StrCat(output_directory, ": expected no such folder or an empty one"));
  }
  // A failure leaves nothing that looks like a checkpoint: the folder gets its name when it is complete.
  std::string partial = output_directory;
  while (partial.size() > 1 && partial.back() == '/') partial.pop_back();  // beside the folder, not in it
  StrAppend(&partial, ".partial.", getpid());
  fs::create_directories(partial, error);
  if (error) return FileSystemError(partial, error);
  absl::Status status = WriteFolder(checkpoint, *submodel, partial);
  if (status.ok()) {
    fs::rename(partial, output_directory, error);
    if (error) status = FileSystemError(output_directory, error);
  }
  if (!status.ok()) fs::remove_all(partial, error);
  return status;
}

}  // namespace nestor
