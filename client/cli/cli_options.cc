#include "client/cli/cli_options.h"

#include <cstdlib>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "boost/program_options.hpp"
#include "google/protobuf/util/json_util.h"

namespace nestor {
namespace {

namespace po = boost::program_options;

constexpr char kDefaultServer[] = "127.0.0.1:50051";

constexpr char kUsage[] =
    R"(nestor generate [options] [PROMPT]   one generation; the prompt from standard input where none is given
nestor chat [options]                a conversation; Ctrl-C stops an answer, Ctrl-D or /quit ends, /reset starts over
nestor models [options]              what the server serves

Exit status: 0 done, 1 the server refused or failed, 2 wrong usage, 3 the server cannot be reached, 130 interrupted.

)";

po::options_description OptionDescriptions() {
  po::options_description options("Options", 110);
  // clang-format off
  options.add_options()
      ("server", po::value<std::string>(), "HOST:PORT (default: NESTOR_SERVER or 127.0.0.1:50051)")
      ("model", po::value<std::string>(), "checkpoint folder to serve inside this process, in place of a server")
      ("output", po::value<std::string>(), "text or json, one message a line (default: text on a terminal, else json)")
      ("timeout", po::value<double>(), "seconds after which to give up")
      ("raw", po::bool_switch(), "the prompt is text as the model reads it, not a user's message")
      ("system", po::value<std::string>(), "system message")
      ("thinking", po::value<bool>(), "think before answering: true or false")
      ("max-thinking-tokens", po::value<int>(), "close thinking after this many tokens")
      ("thinking-submodel", po::value<std::string>(), "submodel that thinks")
      ("answer-submodel", po::value<std::string>(), "submodel that answers")
      ("handoff", po::value<std::string>(), "recompute or transplant")
      ("max-total-parameters", po::value<int64_t>(), "budget: parameters of the submodel")
      ("max-active-parameters", po::value<int64_t>(), "budget: parameters a token meets")
      ("max-memory-bytes", po::value<int64_t>(), "budget: memory of submodel and request")
      ("best-effort", po::bool_switch(), "nothing fits the budget: run the smallest submodel")
      ("max-output-tokens", po::value<int>(), "thinking and answer together")
      ("temperature", po::value<float>(), "0: greedy")
      ("top-k", po::value<int>(), "only the k likeliest tokens")
      ("top-p", po::value<float>(), "only the fewest tokens whose probability reaches p")
      ("min-p", po::value<float>(), "only tokens at least this likely against the likeliest")
      ("repetition-penalty", po::value<float>(), "of tokens in prompt and output; 1: none")
      ("presence-penalty", po::value<float>(), "of tokens in the output")
      ("frequency-penalty", po::value<float>(), "of tokens in the output, each time")
      ("seed", po::value<std::string>(), "same seed, same output")
      ("stop", po::value<std::vector<std::string>>(), "end the answer before this text; may be repeated")
      ("top-logprobs", po::value<int>(), "report logarithms of probabilities (json)")
      ("token-ids", po::bool_switch(), "report token ids (json)")
      ("priority", po::value<int>(), "larger goes first")
      ("request-id", po::value<std::string>(), "for logs; echoed")
      ("generation", po::value<std::string>(),
       "fields of nestor.v1.Generation as JSON, for what has no option here: '{\"ignore_eos\": true}'; options win")
      ("help", po::bool_switch(), "print this and leave");
  // clang-format on
  return options;
}

// Hands the value to `set` if the option was given.
template <typename T, typename Set>
void Apply(const po::variables_map& values, const char* name, Set set) {
  if (values.count(name) > 0) set(values[name].as<T>());
}

void ReadSampling(const po::variables_map& values, v1::Sampling& sampling) {
  Apply<float>(values, "temperature", [&](float value) { sampling.set_temperature(value); });
  Apply<int>(values, "top-k", [&](int value) { sampling.set_top_k(value); });
  Apply<float>(values, "top-p", [&](float value) { sampling.set_top_p(value); });
  Apply<float>(values, "min-p", [&](float value) { sampling.set_min_p(value); });
  Apply<float>(values, "repetition-penalty", [&](float value) { sampling.set_repetition_penalty(value); });
  Apply<float>(values, "presence-penalty", [&](float value) { sampling.set_presence_penalty(value); });
  Apply<float>(values, "frequency-penalty", [&](float value) { sampling.set_frequency_penalty(value); });
}

absl::Status ReadSeed(const po::variables_map& values, v1::Generation& generation) {
  if (values.count("seed") == 0) return absl::OkStatus();
  const std::string word = values["seed"].as<std::string>();
  uint64_t seed = 0;
  if (!absl::SimpleAtoi(word, &seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seed: expected a whole number from 0 to 2^64 - 1, found ", word));
  }
  generation.mutable_sampling()->set_seed(seed);
  return absl::OkStatus();
}

absl::Status ReadJson(const po::variables_map& values, v1::Generation& generation) {
  if (values.count("generation") == 0) return absl::OkStatus();
  const auto status =
      google::protobuf::util::JsonStringToMessage(values["generation"].as<std::string>(), &generation);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--generation: ", std::string(status.message())));
  }
  if (generation.prompt_case() == v1::Generation::PROMPT_NOT_SET) return absl::OkStatus();
  return absl::InvalidArgumentError("--generation: expected no prompt, which is an argument of its own");
}

void ReadPlan(const po::variables_map& values, v1::Generation& generation) {
  v1::ThinkingOptions& thinking = *generation.mutable_thinking();
  v1::Budget& budget = *generation.mutable_budget();
  Apply<bool>(values, "thinking", [&](bool value) { thinking.set_enabled(value); });
  Apply<int>(values, "max-thinking-tokens", [&](int value) { thinking.set_max_thinking_tokens(value); });
  Apply<std::string>(values, "thinking-submodel", [&](const auto& value) { thinking.set_submodel(value); });
  Apply<std::string>(values, "answer-submodel",
                     [&](const auto& value) { generation.mutable_answer()->set_submodel(value); });
  Apply<int64_t>(values, "max-total-parameters",
                 [&](int64_t value) { budget.set_max_total_parameters(value); });
  Apply<int64_t>(values, "max-active-parameters",
                 [&](int64_t value) { budget.set_max_active_parameters(value); });
  Apply<int64_t>(values, "max-memory-bytes", [&](int64_t value) { budget.set_max_memory_bytes(value); });
  if (values["best-effort"].as<bool>()) generation.set_budget_policy(v1::BUDGET_POLICY_BEST_EFFORT);
}

absl::Status ReadHandoff(const po::variables_map& values, v1::Generation& generation) {
  if (values.count("handoff") == 0) return absl::OkStatus();
  const std::string word = values["handoff"].as<std::string>();
  if (word != "recompute" && word != "transplant") {
    return absl::InvalidArgumentError(
        absl::StrCat("--handoff: expected recompute or transplant, found ", word));
  }
  generation.set_handoff(word == "recompute" ? v1::HANDOFF_RECOMPUTE : v1::HANDOFF_TRANSPLANT);
  return absl::OkStatus();
}

absl::Status ReadGeneration(const po::variables_map& values, v1::Generation& generation) {
  if (const absl::Status status = ReadJson(values, generation); !status.ok()) return status;
  ReadSampling(values, *generation.mutable_sampling());
  ReadPlan(values, generation);
  Apply<int>(values, "max-output-tokens", [&](int value) { generation.set_max_output_tokens(value); });
  Apply<int>(values, "top-logprobs", [&](int value) { generation.set_top_logprobs(value); });
  Apply<int>(values, "priority", [&](int value) { generation.set_priority(value); });
  Apply<std::string>(values, "request-id", [&](const auto& value) { generation.set_request_id(value); });
  Apply<std::vector<std::string>>(values, "stop", [&](const auto& stops) {
    for (const std::string& stop : stops) generation.add_stop_strings(stop);
  });
  if (values["token-ids"].as<bool>()) generation.set_return_token_ids(true);
  if (const absl::Status status = ReadSeed(values, generation); !status.ok()) return status;
  return ReadHandoff(values, generation);
}

absl::StatusOr<OutputForm> ReadOutputForm(const po::variables_map& values, bool is_terminal) {
  if (values.count("output") == 0) return is_terminal ? OutputForm::kText : OutputForm::kJson;
  const std::string word = values["output"].as<std::string>();
  if (word == "text") return OutputForm::kText;
  if (word == "json") return OutputForm::kJson;
  return absl::InvalidArgumentError(absl::StrCat("--output: expected text or json, found ", word));
}

absl::StatusOr<Command> ReadCommand(const std::string& word) {
  if (word == "generate") return Command::kGenerate;
  if (word == "chat") return Command::kChat;
  if (word == "models") return Command::kModels;
  return absl::InvalidArgumentError(absl::StrCat("expected generate, chat or models, found '", word, "'"));
}

absl::Status ReadServer(const po::variables_map& values, CliOptions& options) {
  const char* const variable = std::getenv("NESTOR_SERVER");
  options.server = variable != nullptr ? variable : kDefaultServer;
  Apply<std::string>(values, "server", [&](const auto& value) { options.server = value; });
  Apply<std::string>(values, "model", [&](const auto& value) { options.model_directory = value; });
  if (values.count("server") > 0 && values.count("model") > 0) {
    return absl::InvalidArgumentError("expected --server or --model, found both");
  }
  if (values.count("model") > 0 && options.model_directory.empty()) {
    return absl::InvalidArgumentError("--model: expected a folder, found nothing");
  }
  if (options.server.empty()) {
    return absl::InvalidArgumentError("--server (or NESTOR_SERVER): expected HOST:PORT, found nothing");
  }
  return absl::OkStatus();
}

// An option that a command has no use for would be ignored.
absl::Status CheckOptionsSuit(Command command, bool raw, const po::variables_map& values) {
  const std::set<std::string> of_models = {"words", "server", "model", "output", "timeout"};
  for (const auto& [name, value] : values) {
    if (value.defaulted()) continue;
    if (command == Command::kModels && !of_models.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": not an option of nestor models"));
    }
    if (command == Command::kChat && name == "raw") {
      return absl::InvalidArgumentError("--raw: not an option of nestor chat");
    }
    if (raw && name == "system") {
      return absl::InvalidArgumentError("--system: expected a chat, found --raw, which has no messages");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CliOptions> ReadOptions(const po::variables_map& values, bool is_terminal) {
  CliOptions options;
  const auto words =
      values.count("words") > 0 ? values["words"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (values["help"].as<bool>()) return options;
  if (words.empty()) return absl::InvalidArgumentError("expected generate, chat or models, found nothing");
  const absl::StatusOr<Command> command = ReadCommand(words[0]);
  if (!command.ok()) return command.status();
  options.command = *command;
  const size_t words_max = *command == Command::kGenerate ? 2 : 1;
  if (words.size() > words_max) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", words[words_max], "'"));
  }
  if (words.size() == 2) options.prompt = words[1];
  options.prompt_from_stdin = words.size() < 2 || words[1] == "-";
  if (words.size() == 2 && words[1].empty()) return absl::InvalidArgumentError("expected a prompt, found ''");
  options.raw = values["raw"].as<bool>();
  if (const absl::Status status = CheckOptionsSuit(*command, options.raw, values); !status.ok())
    return status;
  if (const absl::Status status = ReadServer(values, options); !status.ok()) return status;
  const absl::StatusOr<OutputForm> output = ReadOutputForm(values, is_terminal);
  if (!output.ok()) return output.status();
  options.output = *output;
  options.colours = is_terminal && std::getenv("NO_COLOR") == nullptr;
  Apply<std::string>(values, "system", [&](const auto& value) { options.system = value; });
  Apply<double>(values, "timeout", [&](double value) { options.timeout_seconds = value; });
  if (!(options.timeout_seconds >= 0)) return absl::InvalidArgumentError("--timeout: expected 0 or more");
  if (const absl::Status status = ReadGeneration(values, options.generation); !status.ok()) return status;
  return options;
}

}  // namespace

absl::StatusOr<CliOptions> ParseCliOptions(int argc, const char* const* argv, bool is_terminal) {
  po::options_description all = OptionDescriptions();
  all.add_options()("words", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("words", -1);
  try {
    po::variables_map values;
    constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).style(kStyle).run(),
              values);
    po::notify(values);
    return ReadOptions(values, is_terminal);
  } catch (const po::error& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

std::string CliUsage() {
  std::ostringstream usage;
  usage << kUsage << OptionDescriptions();
  return usage.str();
}

}  // namespace nestor
