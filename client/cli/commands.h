// The commands of `nestor`.
#ifndef NESTOR_CLIENT_CLI_COMMANDS_H_
#define NESTOR_CLIENT_CLI_COMMANDS_H_

#include <iosfwd>

#include "client/cli/cli_options.h"
#include "client/client.h"

namespace nestor {

// Exit statuses.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitMisused = 2;
inline constexpr int kExitUnreachable = 3;
inline constexpr int kExitInterrupted = 130;

// Where a command reads and writes.
struct Console {
  std::istream& in;
  std::ostream& out;    // answers
  std::ostream& notes;  // plans, usage, errors
};

int RunGenerate(Client& client, const CliOptions& options, const Console& console);
int RunChat(Client& client, const CliOptions& options, const Console& console);
int RunModels(Client& client, const CliOptions& options, const Console& console);

// The whole program: reads the command line, connects or serves in-process, runs the command.
int RunCli(int argc, const char* const* argv, bool is_terminal, const Console& console);

}  // namespace nestor

#endif  // NESTOR_CLIENT_CLI_COMMANDS_H_
