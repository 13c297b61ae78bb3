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
// default. INVALID_ARGUMENT naming an unknown flag, or the flag or variable whose value is out of range.
absl::StatusOr<ServerConfig> ParseServerConfig(int argc, const char* const* argv);

// An error about an engine option ("cache_bytes: …") in the words of the flags ("--cache-bytes: …").
std::string InWordsOfFlags(const absl::Status& status);

// Every flag with its meaning and default.
std::string ServerUsage();

}  // namespace nestor

#endif  // NESTOR_SERVER_SERVER_CONFIG_H_
