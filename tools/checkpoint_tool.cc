#include "tools/checkpoint_tool.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "tools/arguments.h"
#include "tools/commands.h"

namespace nestor {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kCalledWrongly = 2;

struct Command {
  std::string name;
  std::string usage;  // what follows the name
  std::string summary;
  std::vector<FlagSpec> flags;
  absl::Status (*run)(const Arguments& arguments, std::ostream& out);
};

const std::vector<Command>& Commands() {
  static const auto* const kCommands = new std::vector<Command>{
      {"inspect",
       "DIR [--json]",
       "layers, tensors and submodels, with parameters, bytes and the state of a sequence",
       {{"--json", "", ""}},
       &Inspect},
      {"verify",
       "DIR... [--tolerance NUMBER]",
       "compare with the golden results in the folder; the tolerance is absolute, 2e-4 unless given",
       {{"--tolerance", "NUMBER", ""}},
       &Verify},
      {"slice",
       "DIR --submodel NAME -o OUT",
       "write one submodel as an ordinary checkpoint into a new folder",
       {{"--submodel", "NAME", ""}, {"--output", "OUT", "-o"}},
       &Slice},
      {"tokenize",
       "TOKENIZER_JSON (TEXT | --golden FILE.jsonl)",
       "print the tokens of a text, or compare with golden lines",
       {{"--golden", "FILE.jsonl", ""}},
       &Tokenize},
  };
  return *kCommands;
}

std::string Usage() {
  std::string usage = "usage: nestor-checkpoint COMMAND ...\n\n";
  for (const Command& command : Commands()) {
    StrAppend(&usage, "  ", command.name, " ", command.usage, "\n      ", command.summary, "\n");
  }
  StrAppend(&usage, "\nexit status: 0 done, 1 failed, 2 called wrongly\n");
  return usage;
}

std::string UsageOf(const Command& command) {
  return StrCat("usage: nestor-checkpoint ", command.name, " ", command.usage, "\n  ", command.summary, "\n");
}

bool IsHelp(const std::string& argument) { return argument == "--help" || argument == "-h"; }

// Whether help is asked for, before a `--` that makes everything behind it a word.
bool AsksForHelp(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::any_of(arguments.begin(), end, IsHelp);
}

absl::Status Run(const Command& command, const std::vector<std::string>& arguments, std::ostream& out) {
  NESTOR_ASSIGN_OR_RETURN(const Arguments parsed, Arguments::Parse(arguments, command.flags));
  return command.run(parsed, out);
}

}  // namespace

int RunCheckpointTool(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  if (!arguments.empty() && IsHelp(arguments[0])) {
    out << Usage();
    return kDone;
  }
  const auto command = std::find_if(Commands().begin(), Commands().end(), [&](const Command& candidate) {
    return !arguments.empty() && candidate.name == arguments[0];
  });
  if (command == Commands().end()) {
    if (!arguments.empty()) err << "nestor-checkpoint: unknown command " << arguments[0] << "\n";
    err << Usage();
    return kCalledWrongly;
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (AsksForHelp(rest)) {
    out << UsageOf(*command);
    return kDone;
  }
  absl::Status status = Run(*command, rest, out);
  if (status.ok() && !out.flush()) status = absl::DataLossError("the output cannot be written");
  if (status.ok()) return kDone;
  err << "nestor-checkpoint " << command->name << ": " << status.message() << "\n";
  if (!IsMisuse(status)) return kFailed;
  err << UsageOf(*command);
  return kCalledWrongly;
}

}  // namespace nestor
