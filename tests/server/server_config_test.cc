#include "server/server_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace nestor {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<ServerConfig> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "nestor-server");
  return ParseServerConfig(static_cast<int>(arguments.size()), arguments.data());
}

TEST(ServerConfig, DefaultsComeFromTheOptions) {
  const auto config = Parse({"--model", "models/abacus/"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.address, "127.0.0.1:50051");
  EXPECT_EQ(config->server.model_name, "abacus");
  EXPECT_EQ(config->engine.rows_max, EngineOptions().rows_max);
  EXPECT_TRUE(config->server.reflection);
}

TEST(ServerConfig, FlagsWinOverTheEnvironment) {
  setenv("NESTOR_ROWS_MAX", "100", 1);
  setenv("NESTOR_QUEUE_MAX", "7", 1);
  const auto config = Parse({"--model=m", "--rows-max=200", "--reflection=false"});
  unsetenv("NESTOR_ROWS_MAX");
  unsetenv("NESTOR_QUEUE_MAX");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->engine.rows_max, 200);
  EXPECT_EQ(config->engine.queue_max, 7);
  EXPECT_FALSE(config->server.reflection);
}

TEST(ServerConfig, WhatIsUnknownOrWrongIsRefused) {
  const auto message = [](std::vector<const char*> arguments) {
    const auto config = Parse(std::move(arguments));
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(config.status().message());
  };
  EXPECT_THAT(message({"--model=m", "--rowsmax=1"}), HasSubstr("rowsmax"));
  EXPECT_THAT(message({"--model=m", "--rows=100"}), HasSubstr("rows"));  // no guessing from a beginning
  EXPECT_THAT(message({"--model=m", "stray"}), HasSubstr("positional"));
  EXPECT_THAT(message({"--model=m", "--rows-max=many"}), HasSubstr("many"));
  EXPECT_THAT(message({"--model=m", "--log-level=loud"}), HasSubstr("loud"));
  EXPECT_THAT(message({"--model=m", "--drain-seconds=-1"}), HasSubstr("drain-seconds"));
  EXPECT_THAT(message({}), HasSubstr("--model: expected a checkpoint folder"));
}

TEST(ServerConfig, EngineOptionsAreCheckedUnderTheNamesOfTheirFlags) {
  const auto message = [](const char* flag) {
    return std::string(Parse({"--model=m", flag}).status().message());
  };
  EXPECT_EQ(message("--rows-max=63"), "--rows-max: expected 64 to 16384, found 63");
  EXPECT_EQ(message("--sequences-max=0"), "--sequences-max: expected 1 to 4096, found 0");
  EXPECT_THAT(message("--queue-max=-1"), HasSubstr("--queue-max: expected 1 to"));
  EXPECT_THAT(message("--cache-bytes=0"), HasSubstr("--cache-bytes: expected 1 to"));
  EXPECT_THAT(message("--default-max-output-tokens=0"),
              HasSubstr("--default-max-output-tokens: expected 1 to"));
}

TEST(ServerConfig, AddressesAreHostAndPort) {
  for (const char* good : {"127.0.0.1:0", "localhost:65535", "[::1]:50051", "0.0.0.0:1"}) {
    EXPECT_TRUE(Parse({"--model=m", "--address", good}).ok()) << good;
  }
  for (const char* bad : {"", ":1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:116538", "h:-1",
                          "h:1x", "::1:50051", "unix:/tmp/x:1", "[]:1", "h:99999999999999999999"}) {
    EXPECT_THAT(std::string(Parse({"--model=m", "--address", bad}).status().message()),
                HasSubstr("--address: expected HOST:PORT"))
        << bad;
  }
}

TEST(ServerConfig, ErrorsInTheEnvironmentNameTheVariable) {
  setenv("NESTOR_ROWS_MAX", "abc", 1);
  const auto config = Parse({"--model=m"});
  unsetenv("NESTOR_ROWS_MAX");
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("NESTOR_ROWS_MAX in the environment"));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("abc"));
}

TEST(ServerConfig, VariablesOfOthersAreLeftAlone) {
  setenv("NESTOR_SERVICE_HOST", "10.0.0.1", 1);  // set by Kubernetes
  EXPECT_TRUE(Parse({"--model=m"}).ok());
  unsetenv("NESTOR_SERVICE_HOST");
}

TEST(ServerConfig, HelpNamesEveryFlag) {
  EXPECT_TRUE(Parse({"--help"})->help);
  for (const char* flag : {"--model", "--address", "--cache-bytes", "--drain-seconds", "--log-level"}) {
    EXPECT_THAT(ServerUsage(), HasSubstr(flag));
  }
}

}  // namespace
}  // namespace nestor
