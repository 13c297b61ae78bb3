#include "server/server_config.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include "boost/program_options.hpp"
#include "engine/base/error_detail.h"
#include "engine/base/str_cat.h"
#include "spdlog/common.h"

namespace nestor {
namespace {

namespace po = boost::program_options;

po::options_description Describe(ServerConfig& config) {
  const auto value = [](auto& target) { return po::value(&target)->default_value(target); };
  po::options_description options(
      "Options (each also as an environment variable: --rows-max is NESTOR_ROWS_MAX)", 110);
  // clang-format off
  options.add_options()
      ("model", po::value(&config.model_directory), "checkpoint folder to serve (required)")
      ("model-name", po::value(&config.server.model_name)->default_value("", "the folder's name"), "name in the API")
      ("address", value(config.server.address), "where to listen; port 0 takes any free port")
      ("sequences-max", value(config.engine.sequences_max), "requests that run at once")
      ("cache-bytes", value(config.engine.cache_bytes), "bound of recurrent state and KV cache together; bounds the context too")
      ("rows-max", value(config.engine.rows_max), "token positions in one step, at least 64")
      ("queue-max", value(config.engine.queue_max), "requests that wait; more are refused")
      ("default-max-output-tokens", value(config.engine.default_max_output_tokens),
       "for requests that name no limit")
      ("receive-bytes-max", value(config.server.receive_bytes_max), "size of one request message")
      ("pending-max", value(config.server.pending_max), "requests that are being read; more are refused")
      ("reflection", value(config.server.reflection), "gRPC server reflection")
      ("drain-seconds", value(config.drain_seconds), "how long open requests may go on after SIGTERM")
      ("log-level", value(config.log_level), "trace, debug, info, warning, error, critical or off")
      ("help", po::bool_switch(&config.help), "print this and leave");
  // clang-format on
  return options;
}

// NESTOR_ROWS_MAX -> rows-max; empty for variables that name no flag: Kubernetes sets NESTOR_… of its own for
// a service of that name.
std::string FlagOfVariable(const std::string& variable, const po::options_description& options) {
  constexpr std::string_view kPrefix = "NESTOR_";
  if (!variable.starts_with(kPrefix)) return "";
  std::string flag = variable.substr(kPrefix.size());
  std::transform(flag.begin(), flag.end(), flag.begin(),
                 [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
  return options.find_nothrow(flag, /*approx=*/false) != nullptr ? flag : "";
}

// rows-max -> NESTOR_ROWS_MAX.
std::string VariableOfFlag(std::string_view flag) {
  std::string variable = "NESTOR_";
  for (const char c : flag) variable += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return variable;
}

void ReadEnvironment(const po::options_description& options, po::variables_map& values) {
  const auto flag_of = [&](const std::string& variable) { return FlagOfVariable(variable, options); };
  try {
    po::store(po::parse_environment(options, flag_of), values);
  } catch (const po::error_with_option_name& error) {
    const std::string option = error.get_option_name();  // with the dashes
    throw po::error(StrCat(VariableOfFlag(option.substr(option.find_first_not_of('-'))),
                           " in the environment: ", error.what()));
  }
}

// "127.0.0.1:50051", "localhost:0", "[::]:50051".
bool IsHostAndPort(const std::string& address) {
  constexpr int kPortMax = 65535;
  const size_t colon = address.rfind(':');
  if (colon == 0 || colon == std::string::npos) return false;
  const std::string host = address.substr(0, colon), port = address.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (!bracketed && host.find_first_of(":/[]") != std::string::npos) return false;
  const bool digits = std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c); });
  return digits && !port.empty() && port.size() <= 5 && std::stoi(port) <= kPortMax;
}

absl::Status Check(const ServerConfig& config) {
  const auto error = [](std::string_view flag, std::string_view expected, const auto& found) {
    return absl::InvalidArgumentError(StrCat("--", flag, ": expected ", expected, ", found ", found));
  };
  if (config.model_directory.empty()) return error("model", "a checkpoint folder", "nothing");
  if (!IsHostAndPort(config.server.address)) {
    return error("address", "HOST:PORT with a port from 0 to 65535", StrCat("'", config.server.address, "'"));
  }
  if (config.server.receive_bytes_max < 1)
    return error("receive-bytes-max", "1 or more", config.server.receive_bytes_max);
  if (config.server.pending_max < 1) return error("pending-max", "1 or more", config.server.pending_max);
  if (!(config.drain_seconds >= 0)) return error("drain-seconds", "0 or more", config.drain_seconds);
  if (spdlog::level::from_str(config.log_level) == spdlog::level::off && config.log_level != "off") {
    return error("log-level", "a level", config.log_level);
  }
  const absl::Status engine = CheckOptions(config.engine);
  return engine.ok() ? engine : absl::InvalidArgumentError(InWordsOfFlags(engine));
}

}  // namespace

absl::StatusOr<ServerConfig> ParseServerConfig(int argc, const char* const* argv) {
  ServerConfig config;
  const po::options_description options = Describe(config);
  try {
    po::variables_map values;
    const po::positional_options_description no_positional;
    // Whole names only: what a beginning means could change with the next flag.
    constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(argc, argv).options(options).positional(no_positional).style(kStyle).run(),
        values);
    ReadEnvironment(options, values);
    po::notify(values);
  } catch (const po::error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  if (config.help) return config;
  if (config.server.model_name.empty()) config.server.model_name = ModelNameOf(config.model_directory);
  if (const absl::Status status = Check(config); !status.ok()) return status;
  return config;
}

std::string InWordsOfFlags(const absl::Status& status) {
  std::string message(status.message());
  const std::optional<std::string> field = FieldOf(status);
  if (!field || !message.starts_with(*field)) return message;
  std::replace(message.begin(), message.begin() + static_cast<ptrdiff_t>(field->size()), '_', '-');
  return "--" + message;
}

std::string ServerUsage() {
  ServerConfig defaults;
  std::ostringstream usage;
  usage << "Usage: nestor-server --model DIR [options]\n\n" << Describe(defaults);
  return usage.str();
}

}  // namespace nestor
