// The command line of `nestor`.
#ifndef NESTOR_CLIENT_CLI_CLI_OPTIONS_H_
#define NESTOR_CLIENT_CLI_CLI_OPTIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "nestor/v1/generation.pb.h"

namespace nestor {

enum class Command { kGenerate, kChat, kModels, kHelp };
enum class OutputForm { kText, kJson };

struct CliOptions {
  Command command = Command::kHelp;
  std::string server;           // HOST:PORT; used where `model_directory` is empty
  std::string model_directory;  // serve this checkpoint inside the process
  OutputForm output = OutputForm::kText;
  bool colours = false;
  double timeout_seconds = 0;  // 0: none
  std::string prompt;          // generate: the words of the command line
  bool prompt_from_stdin = false;
  bool raw = false;           // generate: the prompt is text, not a user's message
  std::string system;         // a system message
  v1::Generation generation;  // everything but the prompt: what --generation says, over it the other options
};

// `is_terminal`: whether standard output is one, which decides the default form. INVALID_ARGUMENT with words
// for the user.
absl::StatusOr<CliOptions> ParseCliOptions(int argc, const char* const* argv, bool is_terminal);

std::string CliUsage();

}  // namespace nestor

#endif  // NESTOR_CLIENT_CLI_CLI_OPTIONS_H_
