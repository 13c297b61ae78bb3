#include "tools/golden_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>

#include "absl/strings/str_format.h"
#include "engine/backend/cpu/cpu_executor.h"
#include "engine/base/json.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/model/executor.h"
#include "engine/serve/scheduler.h"

namespace nestor {
namespace {

constexpr int kGreedyPrompt = 63;  // tokens before `greedy_after_63`

float LargestDifference(absl::Span<const float> found, absl::Span<const float> expected) {
  if (found.size() != expected.size()) return INFINITY;
  float largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const float difference = std::abs(found[i] - expected[i]);
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

int Argmax(absl::Span<const float> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// What one sequence gave, as far as it ran.
struct Trace {
  std::vector<std::vector<float>> logits;  // one per token
  std::vector<std::vector<float>> hidden;  // of the last token: embedding, then active layers
  std::vector<int> hidden_layers;
};

// Runs token sequences through one slot of a fresh executor.
class Runner {
 public:
  Runner(const Model& model, int tokens_max)
      : model_(model),
        executor_(CreateCpuExecutor(model, {1, PagesFor(tokens_max), tokens_max, tokens_max})),
        pages_(PagesFor(tokens_max)) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  void Reset() { executor_->ResetSlot(0); }

  // Continues at `position` with `tokens`, `chunk` a step.
  Trace Run(int submodel, int position, absl::Span<const int32_t> tokens, int chunk) {
    Trace trace;
    for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const auto part = tokens.subspan(begin, chunk);
      RunStep(submodel, position + static_cast<int>(begin), part, trace);
    }
    return trace;
  }

  RecurrentState State(int layer, int submodel) const {
    return executor_->ReadRecurrentState(0, layer, submodel);
  }

 private:
  void RunStep(int submodel, int position, absl::Span<const int32_t> tokens, Trace& trace) {
    const StepSequence sequence{0, submodel, position, tokens, pages_, static_cast<int>(tokens.size())};
    trace.hidden.clear();
    trace.hidden_layers.clear();
    const ResidualObserver observer = [&](int layer, const StepLayout& step, RowBuffer residual) {
      if (layer >= 0 && !model_.submodels[submodel].layers[layer].active) return;
      const float* const row = residual.row(static_cast<int64_t>(step.tokens.size()) - 1);
      trace.hidden.emplace_back(row, row + model_.submodels[submodel].hidden_size);
      trace.hidden_layers.push_back(layer);
    };
    for (const absl::Span<const float> logits : executor_->Step({sequence}, &observer)) {
      trace.logits.emplace_back(logits.begin(), logits.end());
    }
  }

  const Model& model_;
  const std::unique_ptr<Executor> executor_;
  std::vector<int> pages_;
};

class GoldenChecker {
 public:
  static absl::StatusOr<GoldenReport> Check(const std::string& directory) {
    NESTOR_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(directory));
    NESTOR_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(directory + "/golden.json"));
    NESTOR_ASSIGN_OR_RETURN(const SafetensorsFile file,
                            SafetensorsFile::Open(directory + "/golden.safetensors"));
    GoldenChecker checker(BindModel(checkpoint), file);
    try {
      checker.tokens_ = json.at("tokens").get<std::vector<int32_t>>();
      checker.lengths_ = json.at("lengths").get<std::vector<int>>();
      NESTOR_RETURN_IF_ERROR(checker.CheckAll(json));
    } catch (const Json::exception& error) {
      return absl::InvalidArgumentError(StrCat(directory, "/golden.json: ", error.what()));
    }
    return std::move(checker.report_);
  }

 private:
  GoldenChecker(Model model, const SafetensorsFile& file) : model_(std::move(model)), file_(file) {}

  absl::Status CheckAll(const Json& json) {
    for (int submodel = 0; submodel < model_.num_submodels(); ++submodel) {
      for (const int length : lengths_) {
        for (const int chunk : Chunks(length)) NESTOR_RETURN_IF_ERROR(CheckLength(submodel, length, chunk));
      }
      const Json& expected = json.at("submodels").at(model_.submodels[submodel].name);
      CheckArgmax(submodel, expected.at("argmax").get<std::vector<int>>());
      CheckGreedy(submodel, expected.at("greedy_after_63").get<std::vector<int>>());
    }
    for (const Json& handoff : json.value("handoffs", Json::array())) {
      NESTOR_RETURN_IF_ERROR(CheckTransplant(handoff));
    }
    return absl::OkStatus();
  }

  // In one piece, token by token, and every chunk the scheduler may cut.
  static std::set<int> Chunks(int length) {
    std::set<int> chunks = {1, length};
    for (int chunk = kPrefillGrid; chunk < length; chunk += kPrefillGrid) chunks.insert(chunk);
    return chunks;
  }

  absl::Status CheckLength(int submodel, int length, int chunk) {
    const std::string prefix = StrCat(model_.submodels[submodel].name, ".", length, ".");
    runner_.Reset();
    const Trace trace = runner_.Run(submodel, 0, absl::MakeConstSpan(tokens_).first(length), chunk);
    GoldenRun run{model_.submodels[submodel].name, length, chunk, 0, {}, trace.hidden_layers, 0};
    NESTOR_ASSIGN_OR_RETURN(run.logits, CompareRows(prefix + "logits", LastRows(trace.logits)));
    NESTOR_ASSIGN_OR_RETURN(const std::vector<float> hidden, Expected(prefix + "hidden"));
    const int64_t width = model_.submodels[submodel].hidden_size;
    if (hidden.size() != trace.hidden.size() * width) {
      return absl::InvalidArgumentError(StrCat("golden.safetensors: tensor '", prefix, "hidden': expected ",
                                               trace.hidden.size() * width, " values, found ",
                                               hidden.size()));
    }
    for (size_t row = 0; row < trace.hidden.size(); ++row) {
      run.hidden.push_back(
          LargestDifference(trace.hidden[row], absl::MakeConstSpan(hidden).subspan(row * width, width)));
    }
    NESTOR_ASSIGN_OR_RETURN(run.state, CompareState(submodel, prefix));
    report_.runs.push_back(std::move(run));
    return absl::OkStatus();
  }

  absl::StatusOr<float> CompareState(int submodel, const std::string& prefix) {
    float largest = 0;
    for (int layer = 0; layer < model_.config.num_layers(); ++layer) {
      if (!file_.tensors().contains(StrCat(prefix, "ssm.", layer))) continue;
      const RecurrentState state = runner_.State(layer, submodel);
      NESTOR_ASSIGN_OR_RETURN(const std::vector<float> ssm, Expected(StrCat(prefix, "ssm.", layer)));
      NESTOR_ASSIGN_OR_RETURN(const std::vector<float> conv, Expected(StrCat(prefix, "conv.", layer)));
      largest = std::max({largest, LargestDifference(state.ssm, ssm), LargestDifference(state.conv, conv)});
    }
    return largest;
  }

  void CheckArgmax(int submodel, const std::vector<int>& expected) {
    runner_.Reset();
    const int length = static_cast<int>(expected.size());
    const Trace trace = runner_.Run(submodel, 0, absl::MakeConstSpan(tokens_).first(length), length);
    for (int position = 0; position < length; ++position) {
      Expect(submodel, "argmax", position, expected[position], Argmax(trace.logits[position]));
    }
  }

  void CheckGreedy(int submodel, const std::vector<int>& expected) {
    runner_.Reset();
    Trace trace = runner_.Run(submodel, 0, absl::MakeConstSpan(tokens_).first(kGreedyPrompt), kGreedyPrompt);
    for (int i = 0; i < static_cast<int>(expected.size()); ++i) {
      const int32_t token = Argmax(trace.logits.back());
      Expect(submodel, "greedy", kGreedyPrompt + i, expected[i], token);
      trace = runner_.Run(submodel, kGreedyPrompt + i, {token}, 1);
    }
  }

  absl::Status CheckTransplant(const Json& handoff) {
    const std::string first = handoff.at("first"), second = handoff.at("second"),
                      tensor = handoff.at("logits");
    const int before = handoff.at("first_tokens"), after = handoff.at("second_tokens");
    runner_.Reset();
    runner_.Run(Find(first), 0, absl::MakeConstSpan(tokens_).first(before), before);
    const Trace trace =
        runner_.Run(Find(second), before, absl::MakeConstSpan(tokens_).subspan(before, after), after);
    NESTOR_ASSIGN_OR_RETURN(const float difference, CompareRows(tensor, trace.logits));
    report_.transplants.push_back({StrCat(first, ">", second), difference});
    return absl::OkStatus();
  }

  int Find(const std::string& name) const {
    const auto found = std::find_if(model_.submodels.begin(), model_.submodels.end(),
                                    [&](const SubmodelShape& submodel) { return submodel.name == name; });
    return static_cast<int>(found - model_.submodels.begin());
  }

  void Expect(int submodel, std::string_view what, int position, int expected, int found) {
    if (expected == found) return;
    report_.mismatches.push_back(StrCat(model_.submodels[submodel].name, ": ", what, " after ", position,
                                        " tokens: expected ", expected, ", found ", found));
  }

  static std::vector<std::vector<float>> LastRows(const std::vector<std::vector<float>>& logits) {
    return {logits.end() - std::min<size_t>(2, logits.size()), logits.end()};
  }

  absl::StatusOr<float> CompareRows(const std::string& tensor, const std::vector<std::vector<float>>& rows) {
    NESTOR_ASSIGN_OR_RETURN(const std::vector<float> expected, Expected(tensor));
    std::vector<float> found;
    for (const std::vector<float>& row : rows) found.insert(found.end(), row.begin(), row.end());
    return LargestDifference(found, expected);
  }

  absl::StatusOr<std::vector<float>> Expected(const std::string& name) {
    const auto tensor = file_.tensors().find(name);
    if (tensor == file_.tensors().end() || !IsFloat(tensor->second.dtype)) {
      return absl::InvalidArgumentError(
          StrCat(file_.path(), ": expected a float tensor '", name, "', found none"));
    }
    std::vector<float> values(tensor->second.element_count());
    WidenToFloat(tensor->second.dtype, tensor->second.bytes.data(), tensor->second.element_count(),
                 values.data());
    return values;
  }

  static constexpr int kTokensMax = 512;

  const Model model_;
  const SafetensorsFile& file_;
  Runner runner_{model_, kTokensMax};
  std::vector<int32_t> tokens_;
  std::vector<int> lengths_;
  GoldenReport report_;
};

}  // namespace

float GoldenRun::largest() const {
  const float worst_hidden = hidden.empty() ? 0 : *std::max_element(hidden.begin(), hidden.end());
  return std::max({logits, worst_hidden, state});
}

float GoldenReport::largest() const {
  float largest = 0;
  for (const GoldenRun& run : runs) largest = std::max(largest, run.largest());
  for (const Transplant& transplant : transplants) largest = std::max(largest, transplant.logits);
  return largest;
}

absl::StatusOr<GoldenReport> CheckGolden(const std::string& directory) {
  return GoldenChecker::Check(directory);
}

std::string FormatGoldenReport(const GoldenReport& report, float tolerance) {
  std::string text = absl::StrFormat("%-12s %6s %6s %10s %10s %6s %10s\n", "submodel", "length", "chunk",
                                     "logits", "hidden", "layer", "state");
  for (const GoldenRun& run : report.runs) {
    const auto worst = std::max_element(run.hidden.begin(), run.hidden.end()) - run.hidden.begin();
    StrAppend(&text, absl::StrFormat("%-12s %6d %6d %10.2e %10.2e %6d %10.2e%s\n", run.submodel, run.length,
                                     run.chunk, run.logits, run.hidden[worst], run.hidden_layers[worst],
                                     run.state, run.largest() > tolerance ? "  FAILED" : ""));
  }
  for (const GoldenReport::Transplant& transplant : report.transplants) {
    StrAppend(&text, absl::StrFormat("transplant %-14s %10.2e%s\n", transplant.name, transplant.logits,
                                     transplant.logits > tolerance ? "  FAILED" : ""));
  }
  for (const std::string& mismatch : report.mismatches) StrAppend(&text, "FAILED ", mismatch, "\n");
  StrAppend(&text, absl::StrFormat("largest difference %.2e, tolerance %.2e: %s\n", report.largest(),
                                   tolerance, report.Passes(tolerance) ? "passed" : "FAILED"));
  return text;
}

}  // namespace nestor
