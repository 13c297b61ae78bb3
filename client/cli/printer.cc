#include "client/cli/printer.h"

#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/util/json_util.h"

namespace nestor {
namespace {

constexpr char kDim[] = "\x1b[2;36m";
constexpr char kBold[] = "\x1b[1m";
constexpr char kReset[] = "\x1b[0m";

std::string JsonLine(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return "{}";
  return text;
}

double Milliseconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) * 1e3 + duration.nanos() / 1e6;
}

std::string FinishWords(const v1::GenerationEnd& end) {
  switch (end.finish_reason()) {
    case v1::FINISH_REASON_STOP:
      return "complete";
    case v1::FINISH_REASON_STOP_STRING:
      return absl::StrCat("stopped at '", end.stop_string(), "'");
    case v1::FINISH_REASON_LENGTH:
      return "cut at the output limit";
    default:
      return "ended";
  }
}

// Only the times that there are: one token has no time between tokens.
std::string TimingWords(const v1::Timings& timings) {
  std::string words;
  const auto append = [&](bool is_set, std::string_view name, const google::protobuf::Duration& duration) {
    if (!is_set) return;
    absl::StrAppend(&words, absl::StrFormat("%s%.2f ms", std::string(name), Milliseconds(duration)));
  };
  append(timings.has_time_to_first_token(), "first token ", timings.time_to_first_token());
  append(timings.has_time_to_first_answer_token(), ", first answer token ",
         timings.time_to_first_answer_token());
  append(timings.has_time_per_output_token(), ", each token ", timings.time_per_output_token());
  append(timings.has_total(), ", total ", timings.total());
  return words;
}

}  // namespace

bool GenerationPrinter::Print(const v1::GenerateStreamResponse& message) {
  if (message.has_delta()) {
    (message.delta().phase() == v1::PHASE_THINKING ? thinking_ : answer_) += message.delta().text();
  }
  if (options_.output == OutputForm::kJson) {
    out_ << JsonLine(message) << std::endl;
  } else {
    PrintText(message);
  }
  return static_cast<bool>(out_);
}

void GenerationPrinter::PrintText(const v1::GenerateStreamResponse& message) {
  if (message.has_start()) PrintStart(message.start());
  if (message.has_delta()) PrintDelta(message.delta());
  if (message.has_end()) PrintEnd(message.end());
}

void GenerationPrinter::PrintStart(const v1::GenerationStart& start) {
  const v1::Plan& plan = start.plan();
  std::string words = plan.has_thinking_submodel() ? absl::StrCat("thinking: ", plan.thinking_submodel(),
                                                                  ", answering: ", plan.answer_submodel())
                                                   : absl::StrCat("answering: ", plan.answer_submodel());
  if (plan.has_thinking_submodel() && plan.thinking_submodel() != plan.answer_submodel()) {
    absl::StrAppend(&words,
                    ", handoff: ", plan.handoff() == v1::HANDOFF_TRANSPLANT ? "transplant" : "recompute");
  }
  notes_ << "[" << words << " (" << plan.reason() << ")]" << std::endl;
}

void GenerationPrinter::PrintDelta(const v1::GenerationDelta& delta) {
  if (delta.text().empty()) return;
  if (delta.phase() != phase_) {
    if (phase_ == v1::PHASE_THINKING) {
      Colour(kReset);
      if (!thinking_.ends_with('\n')) out_ << '\n';
    }
    phase_ = delta.phase();
    Colour(phase_ == v1::PHASE_THINKING ? kDim : kBold);
  }
  out_ << delta.text() << std::flush;
}

void GenerationPrinter::PrintEnd(const v1::GenerationEnd& end) {
  Finish();
  const v1::Usage& usage = end.usage();
  std::string words = absl::StrFormat("%s; prompt %d", FinishWords(end), usage.prompt_tokens());
  for (const v1::SubmodelUsage& submodel : usage.submodels()) {
    absl::StrAppend(&words, absl::StrFormat(", %s generated %d (computed %d)", submodel.submodel(),
                                            submodel.generated_tokens(), submodel.computed_tokens()));
  }
  if (end.thinking_truncated()) absl::StrAppend(&words, "; thinking was closed by the server");
  absl::StrAppend(&words, "; ", TimingWords(end.timings()));
  notes_ << "[" << words << "]" << std::endl;
}

void GenerationPrinter::Finish() {
  if (options_.output == OutputForm::kJson || phase_ == v1::PHASE_UNSPECIFIED) return;
  Colour(kReset);
  out_ << std::endl;
  phase_ = v1::PHASE_UNSPECIFIED;
}

void GenerationPrinter::Colour(const char* code) {
  if (options_.colours) out_ << code;
}

void PrintModels(const v1::ListModelsResponse& response, OutputForm form, std::ostream& out) {
  if (form == OutputForm::kJson) {
    out << JsonLine(response) << std::endl;
    return;
  }
  for (const v1::Model& model : response.models()) {
    out << absl::StrFormat("%s (%s), context %d tokens, %s\n", model.name(), model.backend(),
                           model.max_context_tokens(),
                           model.supports_thinking() ? "thinks" : "does not think");
    out << absl::StrFormat("  %-12s %16s %16s %16s %12s %12s %9s\n", "submodel", "parameters", "active",
                           "weight bytes", "state bytes", "KV/token", "accuracy");
    for (const v1::Submodel& submodel : model.submodels()) {
      std::string accuracy = "-";  // alone, thinking without limit
      for (const v1::Quality& quality : model.quality()) {
        const bool alone =
            quality.thinking_submodel() == submodel.name() && quality.answer_submodel() == submodel.name();
        if (alone && !quality.has_max_thinking_tokens())
          accuracy = absl::StrFormat("%.1f%%", 100 * quality.accuracy());
      }
      out << absl::StrFormat("  %-12s %16d %16d %16d %12d %12d %9s\n", submodel.name(),
                             submodel.total_parameters(), submodel.active_parameters(),
                             submodel.weight_bytes(), submodel.state_bytes_per_sequence(),
                             submodel.kv_bytes_per_token(), accuracy);
    }
  }
  out << std::flush;
}

}  // namespace nestor
