// nestor-server: serves one elastic checkpoint over gRPC until SIGTERM or SIGINT.
#include <csignal>
#include <iostream>

#include "boost/asio/io_context.hpp"
#include "boost/asio/signal_set.hpp"
#include "engine/base/str_cat.h"
#include "server/server.h"
#include "server/server_config.h"
#include "spdlog/spdlog.h"

namespace nestor {
namespace {

// Exit codes: 0 served and drained, 1 could not start, 2 wrong flags.
constexpr int kFailed = 1;
constexpr int kMisused = 2;

std::string SubmodelWords(const Engine& engine) {
  std::string words;
  for (const SubmodelFacts& submodel : engine.facts().submodels) {
    StrAppend(&words, words.empty() ? "" : ", ", submodel.name, " (", submodel.total_parameters,
              " parameters, ", submodel.weight_bytes, " bytes)");
  }
  return words;
}

// Waits for the first signal; a second one ends the process at once.
void AwaitSignal() {
  boost::asio::io_context context;
  boost::asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([](const boost::system::error_code&, int signal) {
    spdlog::info("signal {}: draining", signal);
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
  });
  context.run();
}

int Serve(const ServerConfig& config) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(config.model_directory, config.engine);
  if (!engine.ok()) {
    std::cerr << "nestor-server: " << engine.status().message() << std::endl;
    return kFailed;
  }
  (*engine)->Start();
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(**engine, config.server);
  if (!server.ok()) {
    std::cerr << "nestor-server: " << server.status().message() << std::endl;
    return kFailed;
  }
  const std::string host = config.server.address.substr(0, config.server.address.rfind(':'));
  spdlog::info("listening on {}:{}, backend {}, model {}, submodels {}, cache {} bytes", host,
               (*server)->port(), (*engine)->backend_name(), config.server.model_name,
               SubmodelWords(**engine), (*engine)->cache_bytes());
  AwaitSignal();
  const bool drained = (*server)->Drain(absl::Seconds(config.drain_seconds));
  spdlog::info(drained ? "drained" : "the drain time is over: the rest was cancelled");
  return 0;
}

int Main(int argc, const char* const* argv) {
  const absl::StatusOr<ServerConfig> config = ParseServerConfig(argc, argv);
  if (!config.ok()) {
    std::cerr << "nestor-server: " << config.status().message() << "\nSee nestor-server --help." << std::endl;
    return kMisused;
  }
  if (config->help) {
    std::cout << ServerUsage();
    return 0;
  }
  spdlog::set_level(spdlog::level::from_str(config->log_level));
  return Serve(*config);
}

}  // namespace
}  // namespace nestor

int main(int argc, char** argv) { return nestor::Main(argc, argv); }
