#include "engine/checkpoint/checkpoint.h"

#include <set>
#include <string_view>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/quantised_weights.h"
#include "engine/checkpoint/untrusted_json.h"
#include "engine/checkpoint/weight_files.h"

namespace nestor {
namespace {

// Reads config.json and, where it is there, generation_config.json.
absl::StatusOr<ModelConfig> ReadConfig(const std::string& directory) {
  const std::string path = directory + "/config.json";
  NESTOR_ASSIGN_OR_RETURN(const Json json, ReadPythonJson(path));
  NESTOR_RETURN_IF_ERROR(RefuseQuantisedConfig(directory, json));
  NESTOR_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(json, path));
  const std::string generation_path = directory + "/generation_config.json";
  if (FileExists(generation_path)) {
    NESTOR_ASSIGN_OR_RETURN(const Json generation, ReadPythonJson(generation_path));
    NESTOR_RETURN_IF_ERROR(ApplyGenerationConfig(generation, generation_path, config));
  }
  return config;
}

// A tensor and the file it lies in, which messages name.
struct StoredTensor {
  Tensor tensor;
  const std::string* path;
};
using StoredTensors = std::map<std::string, StoredTensor>;

// The `backbone.` spelling of a name as native transformers or older exports write it.
std::string CanonicalName(const std::string& name) {
  const std::string canonical =
      name.starts_with("model.") ? StrCat("backbone.", std::string_view(name).substr(6)) : name;
  return canonical == "backbone.embedding.weight" ? "backbone.embeddings.weight" : canonical;
}

// Multi-token prediction layers are not run; their tensors may be there.
bool IsIgnored(const std::string& name) { return name.starts_with("mtp."); }

// Native transformers may keep a layer's experts in one tensor, "….mixer.experts.up_proj" [experts, rows,
// columns].
bool IsStackOfExperts(const std::string& name, const Tensor& tensor) {
  constexpr int64_t kExpertsMax = 1 << 16;
  return tensor.shape.size() == 3 && tensor.shape[0] > 0 && tensor.shape[0] <= kExpertsMax &&
         (name.ends_with(".mixer.experts.up_proj") || name.ends_with(".mixer.experts.down_proj"));
}

// The tensor under its canonical name; a stack of experts as one view for each.
std::vector<std::pair<std::string, Tensor>> Unstack(const std::string& name, const Tensor& tensor) {
  if (!IsStackOfExperts(name, tensor)) return {{name, tensor}};
  const size_t split = name.rfind('.');
  const size_t bytes = tensor.bytes.size() / tensor.shape[0];
  std::vector<std::pair<std::string, Tensor>> experts;
  for (int64_t i = 0; i < tensor.shape[0]; ++i) {
    experts.push_back(
        {StrCat(name.substr(0, split), ".", i, name.substr(split), ".weight"),
         {tensor.dtype, {tensor.shape[1], tensor.shape[2]}, tensor.bytes.subspan(i * bytes, bytes)}});
  }
  return experts;
}

absl::StatusOr<StoredTensors> CollectTensors(const std::vector<SafetensorsFile>& files) {
  StoredTensors tensors;
  for (const SafetensorsFile& file : files) {
    for (const auto& [stored_name, stored] : file.tensors()) {
      if (IsIgnored(stored_name)) continue;
      for (auto& [name, tensor] : Unstack(CanonicalName(stored_name), stored)) {
        if (tensors.emplace(name, StoredTensor{std::move(tensor), &file.path()}).second) continue;
        return absl::InvalidArgumentError(
            StrCat(file.path(), ": tensor '", stored_name, "': expected '", name, "' once, found it again"));
      }
    }
  }
  return tensors;
}

absl::Status CheckTensor(const std::string& directory, const TensorSpec& spec, const ModelConfig& config,
                         const StoredTensors& tensors) {
  const std::vector<int64_t> shape = ShapeOf(spec, config, config.full);
  const auto found = tensors.find(spec.name);
  if (found == tensors.end()) {
    return absl::InvalidArgumentError(StrCat(directory, ": tensor '", spec.name, "': expected shape ",
                                             DescribeShape(shape), ", found no such tensor"));
  }
  const auto& [tensor, path] = found->second;
  const std::string where = StrCat(*path, ": tensor '", spec.name, "'");
  if (!IsFloat(tensor.dtype)) return QuantisedError(where, Describe(tensor));
  if (tensor.shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(where, ": expected shape ", DescribeShape(shape), ", found ", Describe(tensor)));
}

// Every tensor of the schema with its shape, and nothing else.
absl::Status CheckTensors(const std::string& directory, const ModelConfig& config,
                          const StoredTensors& tensors) {
  std::set<std::string> known;
  for (TensorSpec& spec : TensorSchema(config)) {
    NESTOR_RETURN_IF_ERROR(CheckTensor(directory, spec, config, tensors));
    known.insert(std::move(spec.name));
  }
  for (const auto& [name, stored] : tensors) {
    if (known.contains(name)) continue;
    const std::string where = StrCat(*stored.path, ": tensor '", name, "'");
    if (!IsFloat(stored.tensor.dtype)) return QuantisedError(where, Describe(stored.tensor));
    return absl::InvalidArgumentError(
        StrCat(where, ": expected no such tensor, found ", Describe(stored.tensor)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Tensor>> ReadTensors(const std::string& directory,
                                                          const ModelConfig& config,
                                                          const std::vector<SafetensorsFile>& files) {
  NESTOR_ASSIGN_OR_RETURN(StoredTensors stored, CollectTensors(files));
  if (config.tie_word_embeddings) {
    stored.erase(TensorName(TensorRole::kLmHead));  // some exports store the tied head once more
  }
  NESTOR_RETURN_IF_ERROR(CheckTensors(directory, config, stored));
  std::map<std::string, Tensor> tensors;
  for (auto& [name, tensor] : stored) tensors.emplace(name, std::move(tensor.tensor));
  return tensors;
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& directory) {
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  NESTOR_ASSIGN_OR_RETURN(checkpoint.config_, ReadConfig(directory));
  const std::string elastic_path = directory + "/elastic.json";
  checkpoint.has_elastic_descriptor_ = FileExists(elastic_path);
  if (checkpoint.has_elastic_descriptor_) {
    NESTOR_ASSIGN_OR_RETURN(const Json json, ReadUntrustedJson(elastic_path));
    NESTOR_ASSIGN_OR_RETURN(checkpoint.elastic_,
                            ParseElasticDescriptor(json, elastic_path, checkpoint.config_));
  } else {
    checkpoint.elastic_ = OrdinaryDescriptor(checkpoint.config_);
  }
  NESTOR_ASSIGN_OR_RETURN(checkpoint.files_, OpenWeightFiles(directory));
  NESTOR_ASSIGN_OR_RETURN(checkpoint.tensors_, ReadTensors(directory, checkpoint.config_, checkpoint.files_));
  return checkpoint;
}

const Tensor& Checkpoint::tensor(const std::string& name) const {
  const bool is_tied_head = config_.tie_word_embeddings && name == TensorName(TensorRole::kLmHead);
  const auto found = tensors_.find(is_tied_head ? TensorName(TensorRole::kEmbeddings) : name);
  NESTOR_CHECK(found != tensors_.end()) << "no tensor '" << name << "'";
  return found->second;
}

}  // namespace nestor
