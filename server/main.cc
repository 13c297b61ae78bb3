// nestor-server: serves one elastic checkpoint over gRPC until SIGTERM or SIGINT.
#include <csignal>
#include <iostream>

#include "boost/asio/io_context.hpp"
#include "boost/asio/signal_set.hpp"
#include "engine/base/str_cat.h"
#include "server/server.h"
#include "server/server_config.h"
#include "spdlog/async.h"
#include "spdlog/sinks/stdout_color_sinks.h"
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

// Keeps signals that ask for the end, from its construction on.
class EndSignal {
 public:
  EndSignal() : signals_(context_, SIGTERM, SIGINT) {}

  // Waits for the first one; a second one ends the process at once.
  void Await() {
    signals_.async_wait([](const boost::system::error_code&, int signal) {
      spdlog::info("signal {}: draining", signal);
      std::signal(SIGTERM, SIG_DFL);
      std::signal(SIGINT, SIG_DFL);
    });
    context_.run();
  }

 private:
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
};

// Lines are written by a thread of their own and dropped where that falls behind: whoever reads the log must
// not hold up the engine's thread.
void StartLog(const std::string& level) {
  constexpr size_t kLinesMax = 8192;
  spdlog::init_thread_pool(kLinesMax, 1);
  spdlog::set_default_logger(spdlog::create_async_nb<spdlog::sinks::stdout_color_sink_mt>("nestor-server"));
  spdlog::set_level(spdlog::level::from_str(level));
}

int Serve(const ServerConfig& config) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(config.model_directory, config.engine);
  if (!engine.ok()) {
    std::cerr << "nestor-server: " << InWordsOfFlags(engine.status()) << std::endl;
    return kFailed;
  }
  if (const absl::Status& chat = (*engine)->chat_status(); !chat.ok()) {
    spdlog::warn("chat prompts are refused: {}", std::string(chat.message()));
  }
  (*engine)->Start();
  EndSignal end_signal;  // before anybody can know that the server is up
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(**engine, config.server);
  if (!server.ok()) {
    std::cerr << "nestor-server: " << server.status().message() << std::endl;
    return kFailed;
  }
  const std::string host = config.server.address.substr(0, config.server.address.rfind(':'));
  spdlog::info("listening on {}:{}, backend {}, model {}, submodels {}, cache {} bytes", host,
               (*server)->port(), (*engine)->backend_name(), config.server.model_name,
               SubmodelWords(**engine), (*engine)->cache_bytes());
  end_signal.Await();
  const bool drained = (*server)->Drain(absl::Seconds(config.drain_seconds));
  spdlog::info(drained ? "drained" : "the drain time is over: the rest was ended");
  return 0;
}

int Main(int argc, const char* const* argv) {
  const absl::StatusOr<ServerConfig> config = ParseServerConfig(argc, argv);
  if (!config.ok()) {
    std::cerr << "nestor-server: " << config.status().message() << "\nSee nestor-server --help." << std::endl;
    return kMisused;
  }
  if (config->help) {
    std::cout << ServerUsage() << std::flush;
    return std::cout ? 0 : kFailed;
  }
  StartLog(config->log_level);
  const int status = Serve(*config);
  spdlog::shutdown();  // writes what is left
  return status;
}

}  // namespace
}  // namespace nestor

int main(int argc, char** argv) { return nestor::Main(argc, argv); }
