#include "tools/commands.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "engine/base/json.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/slice.h"
#include "engine/text/tokenizer.h"
#include "engine/text/tokenizer_golden.h"
#include "engine/text/utf8.h"
#include "tools/checkpoint_report.h"
#include "tools/golden_check.h"

namespace nestor {
namespace {

constexpr double kTolerance = 2e-4;  // looser ones hide real faults

absl::StatusOr<std::string> OneFolder(const Arguments& arguments) {
  if (arguments.words().size() == 1) return arguments.words()[0];
  return Misuse(StrCat("expected one checkpoint folder, found ", arguments.words().size()));
}

absl::StatusOr<std::string> Needed(const Arguments& arguments, std::string_view flag) {
  const std::optional<std::string> value = arguments.Value(flag);
  if (!value || value->empty()) return Misuse(StrCat(flag, " is needed"));
  return *value;
}

absl::Status CompareWithGolden(const Tokenizer& tokenizer, const std::string& path, std::ostream& out) {
  NESTOR_ASSIGN_OR_RETURN(const TokenizerGoldenReport report, CheckTokenizerGolden(tokenizer, path));
  for (const std::string& message : report.messages) out << message << "\n";
  out << report.lines << " lines, " << report.failures << " differ\n";
  if (report.lines == 0)
    return absl::FailedPreconditionError(StrCat(path, ": expected golden lines, found none"));
  if (report.failures == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(path, ": ", report.failures, " of ", report.lines, " lines differ"));
}

absl::Status PrintTokens(const Tokenizer& tokenizer, const std::string& text, std::ostream& out) {
  NESTOR_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode(text));
  for (const int32_t id : ids) {
    const std::string bytes(tokenizer.TokenBytes(id));
    const bool is_text = !FirstInvalidUtf8(bytes);  // a token may hold half a character
    out << absl::StrFormat("%7d  ", id)
        << (is_text ? Json(bytes).dump() : "\"" + absl::CHexEscape(bytes) + "\"") << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Inspect(const Arguments& arguments, std::ostream& out) {
  NESTOR_ASSIGN_OR_RETURN(const std::string folder, OneFolder(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(folder));
  out << (arguments.Has("--json") ? CheckpointReportJson(checkpoint).dump(2) + "\n"
                                  : CheckpointReport(checkpoint));
  return absl::OkStatus();
}

absl::Status Verify(const Arguments& arguments, std::ostream& out) {
  NESTOR_ASSIGN_OR_RETURN(const double tolerance, arguments.Number("--tolerance", kTolerance));
  const std::vector<std::string>& folders = arguments.words();
  if (folders.empty()) return Misuse("expected one or more checkpoint folders, found none");
  std::string failed;
  for (const std::string& folder : folders) {
    NESTOR_ASSIGN_OR_RETURN(const GoldenReport report, CheckGolden(folder));
    if (folders.size() > 1) out << folder << "\n";
    out << FormatGoldenReport(report, static_cast<float>(tolerance)) << std::flush;
    if (!report.Passes(static_cast<float>(tolerance))) StrAppend(&failed, failed.empty() ? "" : ", ", folder);
  }
  if (failed.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("beyond the tolerance: ", failed));
}

absl::Status Slice(const Arguments& arguments, std::ostream& out) {
  NESTOR_ASSIGN_OR_RETURN(const std::string folder, OneFolder(arguments));
  NESTOR_ASSIGN_OR_RETURN(const std::string submodel, Needed(arguments, "--submodel"));
  NESTOR_ASSIGN_OR_RETURN(const std::string output, Needed(arguments, "--output"));
  NESTOR_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(folder));
  NESTOR_RETURN_IF_ERROR(WriteSlice(checkpoint, submodel, output));
  out << output << ": submodel '" << submodel << "' of " << folder << "\n";
  return absl::OkStatus();
}

absl::Status Tokenize(const Arguments& arguments, std::ostream& out) {
  const std::optional<std::string> golden = arguments.Value("--golden");
  const std::vector<std::string>& words = arguments.words();
  if (words.size() != (golden ? 1 : 2)) {
    return Misuse("expected a tokenizer.json and either a text or --golden");
  }
  NESTOR_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(words[0]));
  return golden ? CompareWithGolden(tokenizer, *golden, out) : PrintTokens(tokenizer, words[1], out);
}

}  // namespace nestor
