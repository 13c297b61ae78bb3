// The configuration of nestor-server: flags and environment.
#ifndef NESTOR_SERVER_SERVER_CONFIG_H_
#define NESTOR_SERVER_SERVER_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/serve/engine.h"
#include "server/server.h"

namespace nestor {

struct ServerConfig {
  std::string model_directory;
  EngineOptions engine;
  ServerOptions server;
  double drain_seconds = 30;
  std::string log_level = "info";
  bool help = false;  // print ServerUsage and leave
};

// A flag wins over its environment variable (NESTOR_ and the flag's name in capitals), which wins over the
// default. INVALID_ARGUMENT for an unknown flag or variable, or a value out of range.
absl::StatusOr<ServerConfig> ParseServerConfig(int argc, const char* const* argv);

// Every flag with its meaning and default.
std::string ServerUsage();

}  // namespace nestor

#endif  // NESTOR_SERVER_SERVER_CONFIG_H_
