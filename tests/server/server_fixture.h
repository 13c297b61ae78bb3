// A real server on models/abacus behind a real socket, with a client.
#ifndef NESTOR_TESTS_SERVER_SERVER_FIXTURE_H_
#define NESTOR_TESTS_SERVER_SERVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "engine/serve/engine.h"
#include "server/server.h"

namespace nestor {

class ServerFixture : public ::testing::Test {
 protected:
  void Start(const EngineOptions& engine_options = {}, ServerOptions server_options = {}) {
    server_.reset();
    auto engine = Engine::Load(NESTOR_SOURCE_DIR "/models/abacus", engine_options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    engine_->Start();
    server_options.address = "127.0.0.1:0";
    server_options.model_name = "abacus";
    auto server = Server::Start(*engine_, server_options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = "127.0.0.1:" + std::to_string(server_->port());
    client_ = std::make_unique<Client>(Client::Connect(address_));
  }

  static v1::Generation Ask(const std::string& question = "Sort 17 4 79 50 49 in ascending order.") {
    v1::Generation generation;
    v1::ChatMessage* const message = generation.mutable_chat()->add_messages();
    message->set_role(v1::CHAT_ROLE_USER);
    message->set_content(question);
    return generation;
  }

  // A generation that goes on for as long as the context lasts.
  static v1::Generation Endless() {
    v1::Generation generation = Ask();
    generation.set_ignore_eos(true);
    generation.set_max_output_tokens(4000);
    return generation;
  }

  struct Streamed {
    absl::Status status;
    std::vector<v1::GenerateStreamResponse> messages;
    std::string thinking, answer;

    const v1::GenerationStart& start() const { return messages.front().start(); }
    const v1::GenerationEnd& end() const { return messages.back().end(); }
  };

  Streamed Stream(const v1::Generation& generation, const CallOptions& options = {}) {
    Streamed streamed;
    streamed.status = client_->GenerateStream(
        generation,
        [&](const v1::GenerateStreamResponse& message) {
          streamed.messages.push_back(message);
          if (!message.has_delta()) return;
          (message.delta().phase() == v1::PHASE_THINKING ? streamed.thinking : streamed.answer) +=
              message.delta().text();
        },
        options);
    return streamed;
  }

  // Waits until the engine holds nothing; bounded.
  void ExpectIdle() {
    EngineLoad load = engine_->load();
    for (int i = 0; i < 1000 && load.queued + load.running > 0; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      load = engine_->load();
    }
    EXPECT_EQ(load.queued + load.running, 0);
    EXPECT_EQ(load.slots_free, load.slots_total);
    EXPECT_EQ(load.pages_free, load.pages_total);
  }

  // Waits until so many requests run; bounded.
  void AwaitRunning(int count) {
    for (int i = 0; i < 1000 && engine_->load().running < count; ++i) absl::SleepFor(absl::Milliseconds(10));
    ASSERT_GE(engine_->load().running, count);
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::string address_;
  std::unique_ptr<Client> client_;
};

}  // namespace nestor

#endif  // NESTOR_TESTS_SERVER_SERVER_FIXTURE_H_
