#include "client/cli/commands.h"

#include <istream>
#include <iterator>
#include <memory>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "client/cli/interrupt.h"
#include "client/cli/printer.h"
#include "engine/serve/engine.h"
#include "server/server.h"
#include "spdlog/spdlog.h"

namespace nestor {
namespace {

int ExitOf(const absl::Status& status, bool interrupted) {
  if (status.ok()) return kExitDone;
  if (interrupted) return kExitInterrupted;
  return absl::IsUnavailable(status) ? kExitUnreachable : kExitFailed;
}

void PrintError(const absl::Status& status, bool interrupted, std::ostream& notes) {
  if (interrupted) {
    notes << "nestor: interrupted" << std::endl;
    return;
  }
  const ErrorDetails details = DetailsOf(status);
  const std::string code = absl::StatusCodeToString(status.code());
  notes << "nestor: " << code << ": " << status.message();
  if (!details.reason.empty() && details.reason != code) notes << " [" << details.reason << "]";
  if (!details.field.empty()) notes << " (field " << details.field << ")";
  if (details.retry_delay) notes << " (retry in " << absl::FormatDuration(*details.retry_delay) << ")";
  notes << std::endl;
}

absl::Duration Timeout(const CliOptions& options) {
  return options.timeout_seconds > 0 ? absl::Seconds(options.timeout_seconds) : absl::InfiniteDuration();
}

// One streamed generation that Ctrl-C cancels.
struct StreamResult {
  absl::Status status;
  bool interrupted = false;
};

StreamResult Stream(Client& client, const CliOptions& options, const v1::Generation& generation,
                    GenerationPrinter& printer) {
  CallControl control;
  const InterruptWatch watch([&] { control.Cancel(); });
  const absl::Status status = client.GenerateStream(generation,
                                                    [&](const v1::GenerateStreamResponse& message) {
                                                      if (!printer.Print(message))
                                                        control.Cancel();  // nobody hears the rest
                                                    },
                                                    {Timeout(options), &control});
  printer.Finish();
  return {status, watch.interrupted()};
}

void AddMessage(v1::Chat& chat, v1::ChatRole role, const std::string& content) {
  v1::ChatMessage* const message = chat.add_messages();
  message->set_role(role);
  message->set_content(content);
}

// An engine and a server without a socket, for --model.
class LocalServer {
 public:
  static absl::StatusOr<std::unique_ptr<LocalServer>> Start(const std::string& directory) {
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(directory, EngineOptions());
    if (!engine.ok()) return engine.status();
    (*engine)->Start();
    ServerOptions options;
    options.address = "";
    options.model_name = ModelNameOf(directory);
    spdlog::set_level(spdlog::level::off);  // standard output is the command's
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(**engine, options);
    if (!server.ok()) return server.status();
    return std::unique_ptr<LocalServer>(new LocalServer(*std::move(engine), *std::move(server)));
  }

  Client MakeClient() { return Client(server_->InProcessChannel()); }

 private:
  LocalServer(std::unique_ptr<Engine> engine, std::unique_ptr<Server> server)
      : engine_(std::move(engine)), server_(std::move(server)) {}

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;  // ends before the engine
};

int RunCommand(Client client, const CliOptions& options, const Console& console) {
  switch (options.command) {
    case Command::kGenerate:
      return RunGenerate(client, options, console);
    case Command::kChat:
      return RunChat(client, options, console);
    default:
      return RunModels(client, options, console);
  }
}

// Everything but the check that the output could be written.
int Run(int argc, const char* const* argv, bool is_terminal, const Console& console) {
  const absl::StatusOr<CliOptions> options = ParseCliOptions(argc, argv, is_terminal);
  if (!options.ok()) {
    console.notes << "nestor: " << options.status().message() << "\nSee nestor --help." << std::endl;
    return kExitMisused;
  }
  if (options->command == Command::kHelp) {
    console.out << CliUsage();
    return kExitDone;
  }
  if (options->model_directory.empty()) {
    return RunCommand(Client::Connect(options->server), *options, console);
  }
  const absl::StatusOr<std::unique_ptr<LocalServer>> local = LocalServer::Start(options->model_directory);
  if (!local.ok()) {
    console.notes << "nestor: " << local.status().message() << std::endl;
    return kExitFailed;
  }
  return RunCommand((*local)->MakeClient(), *options, console);
}

}  // namespace

int RunGenerate(Client& client, const CliOptions& options, const Console& console) {
  std::string prompt = options.prompt;
  if (options.prompt_from_stdin) {
    prompt.assign(std::istreambuf_iterator<char>(console.in), {});
    while (!options.raw && prompt.ends_with('\n')) prompt.pop_back();
  }
  v1::Generation generation = options.generation;
  if (options.raw) {
    generation.set_text(prompt);
  } else {
    if (!options.system.empty()) AddMessage(*generation.mutable_chat(), v1::CHAT_ROLE_SYSTEM, options.system);
    AddMessage(*generation.mutable_chat(), v1::CHAT_ROLE_USER, prompt);
  }
  GenerationPrinter printer(options, console.out, console.notes);
  const StreamResult result = Stream(client, options, generation, printer);
  if (!result.status.ok() && console.out) PrintError(result.status, result.interrupted, console.notes);
  return ExitOf(result.status, result.interrupted);
}

int RunChat(Client& client, const CliOptions& options, const Console& console) {
  v1::Chat chat;
  const auto start_over = [&] {
    chat.clear_messages();
    if (!options.system.empty()) AddMessage(chat, v1::CHAT_ROLE_SYSTEM, options.system);
  };
  start_over();
  const bool prompts = options.output == OutputForm::kText;
  for (std::string line; console.out;) {
    if (prompts) console.notes << "> " << std::flush;
    if (!std::getline(console.in, line) || line == "/quit") return kExitDone;
    if (line.empty()) continue;
    if (line == "/reset") {
      start_over();
      continue;
    }
    AddMessage(chat, v1::CHAT_ROLE_USER, line);
    v1::Generation generation = options.generation;
    *generation.mutable_chat() = chat;
    GenerationPrinter printer(options, console.out, console.notes);
    const StreamResult result = Stream(client, options, generation, printer);
    if (!console.out) break;
    if (result.status.ok() || result.interrupted) {  // what was said before an interruption stays said
      AddMessage(chat, v1::CHAT_ROLE_ASSISTANT, printer.answer());
      chat.mutable_messages()->rbegin()->set_reasoning_content(printer.thinking());
      continue;
    }
    PrintError(result.status, result.interrupted, console.notes);
    if (absl::IsUnavailable(result.status)) return kExitUnreachable;
    chat.mutable_messages()->RemoveLast();  // the turn did not take place
  }
  return kExitFailed;
}

int RunModels(Client& client, const CliOptions& options, const Console& console) {
  const absl::StatusOr<v1::ListModelsResponse> response = client.ListModels({Timeout(options)});
  if (!response.ok()) {
    PrintError(response.status(), false, console.notes);
    return ExitOf(response.status(), false);
  }
  PrintModels(*response, options.output, console.out);
  return kExitDone;
}

int RunCli(int argc, const char* const* argv, bool is_terminal, const Console& console) {
  const int status = Run(argc, argv, is_terminal, console);
  if (console.out.flush()) return status;
  console.notes << "nestor: the output cannot be written" << std::endl;
  return kExitFailed;
}

}  // namespace nestor
