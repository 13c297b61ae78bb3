#include "engine/checkpoint/checkpoint.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

constexpr std::string_view kSingleFile = "/model.safetensors";
constexpr std::string_view kIndexFile = "/model.safetensors.index.json";

// Python writes an unlimited time_step_limit as the bare word Infinity, which JSON does not have: quote it.
// NaN stays an error.
std::string QuoteInfinity(std::string_view text) {
  constexpr std::string_view kInfinity = "Infinity";
  std::string quoted;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!in_string && text.substr(i, kInfinity.size()) == kInfinity) {
      StrAppend(&quoted, "\"", kInfinity, "\"");
      i += kInfinity.size() - 1;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    quoted += text[i];
    if (in_string && text[i] == '\\' && i + 1 < text.size()) quoted += text[++i];
  }
  return quoted;
}

absl::StatusOr<Json> ReadConfigFile(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseJson(QuoteInfinity(text), path);
}

absl::Status Unquantised(std::string_view source, std::string_view algorithm) {
  return absl::UnimplementedError(StrCat(source, ": expected BF16, F16 or F32 weights, found ", algorithm,
                                         "; 8-bit and 4-bit weights are not served yet"));
}

// The algorithm's name, wherever ModelOpt puts it: {"quantization": {"quant_algo": …}} or {"quant_algo": …}.
std::string QuantisationName(const Json& json) {
  const Json& inner = json.is_object() && json.contains("quantization") ? json["quantization"] : json;
  if (!inner.is_object()) return "a quantised checkpoint";
  for (const char* key : {"quant_algo", "quant_method"}) {
    if (inner.contains(key) && inner[key].is_string()) return inner[key].get<std::string>() + " weights";
  }
  return "a quantised checkpoint";
}

absl::Status RefuseQuantised(const std::string& directory, const Json& config) {
  if (config.is_object() && config.contains("quantization_config") &&
      !config["quantization_config"].is_null()) {
    return Unquantised(directory + "/config.json", QuantisationName(config["quantization_config"]));
  }
  const std::string side_file = directory + "/hf_quant_config.json";
  if (!FileExists(side_file)) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(side_file));
  return Unquantised(side_file, QuantisationName(json));
}

// Reads config.json and, where it is there, generation_config.json.
absl::StatusOr<ModelConfig> ReadConfig(const std::string& directory) {
  const std::string path = directory + "/config.json";
  NESTOR_ASSIGN_OR_RETURN(const Json json, ReadConfigFile(path));
  NESTOR_RETURN_IF_ERROR(RefuseQuantised(directory, json));
  NESTOR_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(json, path));
  const std::string generation_path = directory + "/generation_config.json";
  if (FileExists(generation_path)) {
    NESTOR_ASSIGN_OR_RETURN(const Json generation, ReadConfigFile(generation_path));
    NESTOR_RETURN_IF_ERROR(ApplyGenerationConfig(generation, generation_path, config));
  }
  return config;
}

// The shard files and which tensors each must hold, from the index.
using ShardMap = std::map<std::string, std::set<std::string>>;

absl::StatusOr<ShardMap> ReadIndex(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const Json index, ReadJsonFile(path));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return absl::InvalidArgumentError(
        StrCat(path, ": key 'weight_map': expected an object, found ", JsonExcerpt(index)));
  }
  ShardMap shards;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || name == "..") {
      return absl::InvalidArgumentError(StrCat(path, ": key 'weight_map.", tensor,
                                               "': expected the name of a file in the folder, found ",
                                               JsonExcerpt(file)));
    }
    shards[name].insert(tensor);
  }
  return shards;
}

absl::Status CheckTotalSize(const std::string& path, int64_t found) {
  NESTOR_ASSIGN_OR_RETURN(const Json index, ReadJsonFile(path));
  if (!index.contains("metadata") || !index["metadata"].is_object()) return absl::OkStatus();
  const Json expected = index["metadata"].value("total_size", Json());
  if (expected.is_null() || expected == found) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(path, ": key 'metadata.total_size': expected ", found,
                                           ", the bytes of all tensors, found ", JsonExcerpt(expected)));
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
  const std::string index_path = StrCat(directory, kIndexFile);
  NESTOR_ASSIGN_OR_RETURN(const ShardMap shards, ReadIndex(index_path));
  std::vector<SafetensorsFile> files;
  int64_t bytes = 0;
  for (const auto& [name, tensors] : shards) {
    NESTOR_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(StrCat(directory, "/", name)));
    NESTOR_RETURN_IF_ERROR(CheckShard(file, tensors));
    for (const auto& [tensor_name, tensor] : file.tensors())
      bytes += static_cast<int64_t>(tensor.bytes.size());
    files.push_back(std::move(file));
  }
  NESTOR_RETURN_IF_ERROR(CheckTotalSize(index_path, bytes));
  return files;
}

// The index, where there is one, says which files count; else the single file.
absl::StatusOr<std::vector<SafetensorsFile>> OpenFiles(const std::string& directory) {
  if (FileExists(StrCat(directory, kIndexFile))) return OpenShards(directory);
  const std::string path = StrCat(directory, kSingleFile);
  if (!FileExists(path)) {
    return absl::NotFoundError(StrCat(directory, ": expected ", kSingleFile.substr(1), " or ",
                                      kIndexFile.substr(1), ", found neither"));
  }
  NESTOR_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  std::vector<SafetensorsFile> files;
  files.push_back(std::move(file));
  return files;
}

// `backbone.` spelling of a name as native transformers or older exports write it.
std::string CanonicalName(const std::string& name) {
  std::string canonical = name;
  if (name.starts_with("model.")) canonical = StrCat("backbone.", name.substr(6));
  if (canonical == "backbone.embedding.weight") canonical = "backbone.embeddings.weight";
  return canonical;
}

// Multi-token prediction layers are not run; their tensors may be there.
bool IsIgnored(const std::string& name) { return name.starts_with("mtp."); }

absl::StatusOr<std::map<std::string, Tensor>> CollectTensors(const std::vector<SafetensorsFile>& files) {
  std::map<std::string, Tensor> tensors;
  for (const SafetensorsFile& file : files) {
    for (const auto& [name, tensor] : file.tensors()) {
      if (IsIgnored(name)) continue;
      if (!tensors.emplace(CanonicalName(name), tensor).second) {
        return absl::InvalidArgumentError(
            StrCat(file.path(), ": tensor '", name, "': expected each tensor once, found it again"));
      }
    }
  }
  return tensors;
}

absl::Status CheckTensor(const std::string& directory, const TensorSpec& spec, const ModelConfig& config,
                         const std::map<std::string, Tensor>& tensors) {
  const std::string where = StrCat(directory, ": tensor '", spec.name, "'");
  Tensor expected;
  expected.shape = ShapeOf(spec, config, config.full);
  const std::string shape = Describe(expected).substr(DTypeName(expected.dtype).size());  // " [16, 8]"
  const auto found = tensors.find(spec.name);
  if (found == tensors.end())
    return absl::InvalidArgumentError(StrCat(where, ": expected", shape, ", found nothing"));
  if (!IsFloat(found->second.dtype)) return Unquantised(where, Describe(found->second));
  if (found->second.shape != expected.shape) {
    return absl::InvalidArgumentError(
        StrCat(where, ": expected", shape, ", found ", Describe(found->second)));
  }
  return absl::OkStatus();
}

// Every tensor of the schema with its shape, and nothing else.
absl::Status CheckTensors(const std::string& directory, const ModelConfig& config,
                          const std::map<std::string, Tensor>& tensors) {
  std::set<std::string> known;
  for (const TensorSpec& spec : TensorSchema(config)) {
    NESTOR_RETURN_IF_ERROR(CheckTensor(directory, spec, config, tensors));
    known.insert(spec.name);
  }
  for (const auto& [name, tensor] : tensors) {
    if (known.contains(name)) continue;
    if (!IsFloat(tensor.dtype))
      return Unquantised(StrCat(directory, ": tensor '", name, "'"), Describe(tensor));
    return absl::InvalidArgumentError(
        StrCat(directory, ": tensor '", name, "': expected no such tensor, found ", Describe(tensor)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& directory) {
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  NESTOR_ASSIGN_OR_RETURN(checkpoint.config_, ReadConfig(directory));
  const std::string elastic_path = directory + "/elastic.json";
  checkpoint.has_elastic_descriptor_ = FileExists(elastic_path);
  if (checkpoint.has_elastic_descriptor_) {
    NESTOR_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(elastic_path));
    NESTOR_ASSIGN_OR_RETURN(checkpoint.elastic_,
                            ParseElasticDescriptor(json, elastic_path, checkpoint.config_));
  } else {
    checkpoint.elastic_ = OrdinaryDescriptor(checkpoint.config_);
  }
  NESTOR_ASSIGN_OR_RETURN(checkpoint.files_, OpenFiles(directory));
  NESTOR_ASSIGN_OR_RETURN(checkpoint.tensors_, CollectTensors(checkpoint.files_));
  if (checkpoint.config_.tie_word_embeddings) {
    checkpoint.tensors_.erase(TensorName(TensorRole::kLmHead));  // some exports store the tied head once more
  }
  NESTOR_RETURN_IF_ERROR(CheckTensors(directory, checkpoint.config_, checkpoint.tensors_));
  return checkpoint;
}

const Tensor& Checkpoint::tensor(const std::string& name) const {
  const bool is_tied_head = config_.tie_word_embeddings && name == TensorName(TensorRole::kLmHead);
  const auto found = tensors_.find(is_tied_head ? TensorName(TensorRole::kEmbeddings) : name);
  NESTOR_CHECK(found != tensors_.end()) << "no tensor '" << name << "'";
  return found->second;
}

}  // namespace nestor
