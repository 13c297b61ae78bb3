#include "server/server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/server/server_fixture.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;

class ServerTest : public ServerFixture {};

TEST_F(ServerTest, DrainLetsOpenRequestsFinishAndRefusesNewOnes) {
  Start();
  Streamed open;
  v1::Generation generation = Endless();
  generation.set_max_output_tokens(300);
  std::thread streaming([&] { open = Stream(generation); });
  AwaitRunning(1);
  std::atomic<bool> drained = false;
  std::thread draining([&] { drained = server_->Drain(absl::Seconds(60)); });
  // Refused while the open one goes on. A client that does not retry sees it at once.
  absl::Status refused;
  for (int i = 0; i < 200 && !absl::IsUnavailable(refused); ++i) {
    refused = client_->Generate(Ask("1+1=?"), {absl::Milliseconds(50), nullptr}).status();
    if (absl::IsDeadlineExceeded(refused)) refused = absl::UnavailableError("retried until its deadline");
  }
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  streaming.join();
  draining.join();
  EXPECT_TRUE(drained);
  EXPECT_TRUE(open.status.ok()) << open.status;
  EXPECT_EQ(open.end().finish_reason(), v1::FINISH_REASON_LENGTH);
}

TEST_F(ServerTest, WhenTheDrainTimeIsOverTheRestEndsWithAStatus) {
  Start();
  Streamed open;
  std::thread streaming([&] { open = Stream(Endless()); });
  AwaitRunning(1);
  EXPECT_FALSE(server_->Drain(absl::Milliseconds(50)));
  streaming.join();
  EXPECT_EQ(open.status.code(), absl::StatusCode::kUnavailable) << open.status;
  EXPECT_THAT(std::string(open.status.message()), HasSubstr("the server stops"));
  ExpectIdle();
}

TEST_F(ServerTest, ModelsAreDescribed) {
  Start();
  const auto response = client_->ListModels();
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(response->models_size(), 1);
  const v1::Model& model = response->models(0);
  EXPECT_EQ(model.name(), "abacus");
  ASSERT_EQ(model.submodels_size(), 3);
  EXPECT_EQ(model.submodels(1).total_parameters(), 1'242'624);
  EXPECT_EQ(model.submodels(1).active_parameters(), 873'984);
  EXPECT_EQ(model.quality_size(), 93);
  EXPECT_TRUE(model.transplant_allowed());
  EXPECT_TRUE(model.supports_chat());
  EXPECT_EQ(model.max_context_tokens(), 4096);
}

TEST_F(ServerTest, GetModelKnowsItsName) {
  Start();
  const auto stub = v1::ModelService::NewStub(server_->InProcessChannel());
  const auto get = [&](const std::string& name) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name(name);
    v1::GetModelResponse response;
    return stub->GetModel(&context, request, &response).error_code();
  };
  EXPECT_EQ(get("abacus"), grpc::StatusCode::OK);
  EXPECT_EQ(get("other"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(get(""), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, AnAddressInUseIsAnError) {
  Start();
  ServerOptions options;
  options.address = address_;
  const absl::Status status = Server::Start(*engine_, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "cannot listen on " + address_ + ": Address already in use");
  options.address = "no-such-host.invalid:1";
  EXPECT_THAT(std::string(Server::Start(*engine_, options).status().message()),
              HasSubstr("cannot listen on no-such-host.invalid:1: Host not found"));
}

TEST_F(ServerTest, InProcessChannelsNeedNoSocket) {
  auto engine = *Engine::Load(NESTOR_SOURCE_DIR "/models/abacus", {});
  engine->Start();
  ServerOptions options;
  options.address = "";
  auto server = *Server::Start(*engine, options);
  EXPECT_EQ(server->port(), 0);
  Client client(server->InProcessChannel());
  EXPECT_EQ(client.Generate(Ask("1+1=?"))->answer_text(), "2");
}

}  // namespace
}  // namespace nestor
