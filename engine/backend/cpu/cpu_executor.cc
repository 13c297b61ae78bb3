#include "engine/backend/cpu/cpu_executor.h"

#include "engine/backend/cpu/cpu_operations.h"
#include "engine/model/graph.h"

namespace nestor {
namespace {

class CpuExecutor : public Executor {
 public:
  CpuExecutor(const Model& model, const ExecutorLimits& limits)
      : model_(model),
        width_rank_(WidthRank(model)),
        operations_(model.config, limits.slots, limits.pages),
        graph_(model, operations_, limits.rows_max, limits.logits_rows_max) {}

  std::string_view backend_name() const override { return "cpu"; }

  void ResetSlot(int slot) override { operations_.state().ResetSlot(slot); }

  std::vector<absl::Span<const float>> Step(absl::Span<const StepSequence> sequences,
                                            const ResidualObserver* observer) override {
    const StepLayout step = LayOutStep(sequences, width_rank_);
    const RowBuffer logits = graph_.Forward(step, observer);
    std::vector<absl::Span<const float>> result(step.logits_order.size());
    for (size_t i = 0; i < result.size(); ++i) {
      result[step.logits_order[i]] = absl::MakeConstSpan(logits.row(i), model_.config.vocab_size);
    }
    return result;
  }

  RecurrentState ReadRecurrentState(int slot, int layer, int submodel) const override {
    const ModelConfig& config = model_.config;
    const int heads = model_.submodels[submodel].layers[layer].mamba_heads;
    const float* const conv = operations_.state().conv(slot, layer);
    const float* const ssm = operations_.state().ssm(slot, layer);
    const int64_t conv_floats = int64_t{config.conv_kernel - 1} * config.conv_channels(heads);
    const int64_t ssm_floats = int64_t{config.mamba_inner(heads)} * config.ssm_state_size;
    return {{conv, conv + conv_floats}, {ssm, ssm + ssm_floats}};
  }

 private:
  const Model& model_;
  const std::vector<int> width_rank_;
  CpuOperations operations_;
  Graph<CpuOperations> graph_;
};

}  // namespace

std::unique_ptr<Executor> CreateCpuExecutor(const Model& model, const ExecutorLimits& limits) {
  return std::make_unique<CpuExecutor>(model, limits);
}

}  // namespace nestor
