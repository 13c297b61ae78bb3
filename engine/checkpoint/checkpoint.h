// A Hugging Face checkpoint folder, opened and checked: config.json, generation_config.json, elastic.json and
// the memory-mapped safetensors. Tokenizer files belong to engine/text.
#ifndef NESTOR_ENGINE_CHECKPOINT_CHECKPOINT_H_
#define NESTOR_ENGINE_CHECKPOINT_CHECKPOINT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/elastic_descriptor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/tensor_schema.h"

namespace nestor {

// Immutable after Open; shared by all submodels, all threads. Move-only; tensor bytes keep their address
// across moves.
class Checkpoint {
 public:
  // Opens the folder's weight files (weight_files.h; a shard boundary may fall anywhere, inside an expert
  // too) and checks that every tensor of TensorSchema is there once, with its shape and a float dtype, and
  // that nothing unexpected is (mtp.* is allowed and ignored). Name prefixes `backbone.` and `model.` are
  // accepted, and a layer's experts stacked in one tensor. 8-bit and 4-bit weights are refused by name.
  static absl::StatusOr<Checkpoint> Open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const ModelConfig& config() const { return config_; }
  const ElasticDescriptor& elastic() const { return elastic_; }
  bool has_elastic_descriptor() const { return has_elastic_descriptor_; }

  // The full tensor by its TensorName (canonical `backbone.` spelling). With tied embeddings the head is the
  // embedding.
  const Tensor& tensor(const std::string& name) const;

 private:
  Checkpoint() = default;

  std::string directory_;
  ModelConfig config_;
  ElasticDescriptor elastic_;
  bool has_elastic_descriptor_ = false;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Tensor> tensors_;  // canonical name -> view into files_
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_CHECKPOINT_CHECKPOINT_H_
