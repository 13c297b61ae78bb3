// nestor: talks to a nestor-server, or serves a checkpoint inside the process.
#include <unistd.h>

#include <iostream>

#include "client/cli/commands.h"

int main(int argc, char** argv) {
  return nestor::RunCli(argc, argv, isatty(STDOUT_FILENO) != 0, {std::cin, std::cout, std::cerr});
}
