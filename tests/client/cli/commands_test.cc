// `nestor` from its command line to its output, against a real server.
#include "client/cli/commands.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "tests/server/server_fixture.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliTest : public ServerFixture {
 protected:
  int Run(std::vector<std::string> arguments, const std::string& input = "") {
    std::vector<const char*> argv = {"nestor"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::istringstream in(input);
    std::ostringstream out, notes;
    const int status =
        RunCli(static_cast<int>(argv.size()), argv.data(), /*is_terminal=*/false, {in, out, notes});
    out_ = out.str();
    notes_ = notes.str();
    return status;
  }

  std::string out_, notes_;
};

TEST_F(CliTest, GeneratesTextWithThePlanBesideIt) {
  Start();
  EXPECT_EQ(Run({"generate", "--server", address_, "--output=text", "--thinking-submodel=0.5m",
                 "--answer-submodel=2.5m", "--temperature=0", "Sort 17 4 79 50 49 in ascending order."}),
            kExitDone);
  EXPECT_THAT(out_, HasSubstr("\n4 17 49 50 79\n"));
  EXPECT_THAT(notes_, HasSubstr("thinking: 0.5m, answering: 2.5m, handoff: recompute"));
  EXPECT_THAT(notes_, HasSubstr("complete; prompt 34, 0.5m generated"));
}

TEST_F(CliTest, APipeGetsJsonLinesAndStandardInputIsThePrompt) {
  Start();
  EXPECT_EQ(Run({"generate", "--server", address_, "--thinking=false"}, "1+1=?\n"), kExitDone);
  EXPECT_THAT(out_, StartsWith("{\"start\":{\"request_id\":"));
  EXPECT_THAT(out_, HasSubstr("\"phase\":\"PHASE_ANSWER\""));
  EXPECT_THAT(out_, HasSubstr("\"finish_reason\":\"FINISH_REASON_STOP\""));
}

TEST_F(CliTest, ChatRemembersAndStartsOver) {
  Start();
  EXPECT_EQ(Run({"chat", "--server", address_, "--output=text", "--thinking=false"},
                "1+1=?\n2+2=?\n/reset\n3+3=?\n/quit\nx"),
            kExitDone);
  std::vector<int> prompt_tokens;
  for (size_t at = notes_.find("prompt "); at != std::string::npos; at = notes_.find("prompt ", at + 1)) {
    prompt_tokens.push_back(std::stoi(notes_.substr(at + 7)));
  }
  ASSERT_EQ(prompt_tokens.size(), 3u) << notes_;
  EXPECT_GT(prompt_tokens[1], prompt_tokens[0]);
  EXPECT_EQ(prompt_tokens[2], prompt_tokens[0]);
}

TEST_F(CliTest, ServesACheckpointInsideTheProcess) {
  EXPECT_EQ(Run({"models", "--model", NESTOR_SOURCE_DIR "/models/abacus", "--output=text"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("abacus (cpu), context 4096 tokens, thinks"));
  EXPECT_THAT(out_, HasSubstr("2473280"));
  EXPECT_EQ(Run({"models", "--model", "/nonexistent"}), kExitFailed);
  EXPECT_THAT(notes_, HasSubstr("/nonexistent/config.json"));
}

TEST_F(CliTest, OptionsThatACommandHasNoUseForAreRefused) {
  EXPECT_EQ(Run({"models", "--temperature=3"}), kExitMisused);
  EXPECT_THAT(notes_, HasSubstr("--temperature: not an option of nestor models"));
  EXPECT_EQ(Run({"chat", "--raw"}), kExitMisused);
  EXPECT_EQ(Run({"generate", "--raw", "--system=x", "y"}), kExitMisused);
}

TEST_F(CliTest, AnyFieldCanBeGivenAsJsonAndOptionsWin) {
  Start();
  EXPECT_EQ(Run({"generate", "--server", address_, "--seed=18446744073709551615", "--generation",
                 R"({"ignore_eos": true, "max_output_tokens": 9, "thinking": {"submodel": "1.2m"},
                     "sampling": {"seed": 5, "logit_bias": {"20": 100}}})",
                 "--max-output-tokens=7", "1+1=?"}),
            kExitDone)
      << notes_;
  EXPECT_THAT(out_, HasSubstr("\"seed\":\"18446744073709551615\""));
  EXPECT_THAT(out_, HasSubstr("\"thinking_submodel\":\"1.2m\""));
  EXPECT_THAT(out_, HasSubstr("\"max_output_tokens\":7"));
  EXPECT_THAT(out_, HasSubstr("\"finish_reason\":\"FINISH_REASON_LENGTH\""));
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsAFailure) {
  Start();
  std::ofstream full("/dev/full");
  std::istringstream in;
  for (std::vector<const char*> argv : {std::vector<const char*>{"nestor", "--help"},
                                        {"nestor", "models", "--server", address_.c_str()},
                                        {"nestor", "generate", "--server", address_.c_str(), "1+1=?"}}) {
    std::ostringstream notes;
    full.clear();
    EXPECT_EQ(RunCli(static_cast<int>(argv.size()), argv.data(), false, {in, full, notes}), kExitFailed);
    EXPECT_THAT(notes.str(), HasSubstr("nestor: the output cannot be written"));
  }
}

TEST_F(CliTest, ExitStatusesTellFailuresApart) {
  Start();
  EXPECT_EQ(Run({"generate", "--server", address_, "--answer-submodel=9m", "x"}), kExitFailed);
  EXPECT_THAT(notes_, HasSubstr("(field generation.answer.submodel)"));
  EXPECT_EQ(Run({"generate", "--server", "127.0.0.1:1", "--timeout=5", "x"}), kExitUnreachable);
  EXPECT_EQ(Run({"generate", "--no-such-flag"}), kExitMisused);
  EXPECT_EQ(Run({"generate", "a", "b"}), kExitMisused);
  EXPECT_EQ(Run({"dance"}), kExitMisused);
  EXPECT_EQ(Run({"generate", "--handoff=teleport", "x"}), kExitMisused);
  EXPECT_EQ(Run({"generate", "--seed=-1", "x"}), kExitMisused);
  EXPECT_EQ(Run({"generate", "--server=", "x"}), kExitMisused);
  EXPECT_EQ(Run({"generate", ""}), kExitMisused);
  EXPECT_EQ(Run({"generate", "--generation={\"no_such\": 1}", "x"}), kExitMisused);
  EXPECT_EQ(Run({"generate", "--generation={\"text\": \"y\"}", "x"}), kExitMisused);
  EXPECT_EQ(Run({"models", "--server", address_, "--model=m"}), kExitMisused);
  EXPECT_EQ(Run({}), kExitMisused);
  EXPECT_EQ(Run({"--help"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("nestor chat"));
}

}  // namespace
}  // namespace nestor
