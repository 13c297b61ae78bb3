// The client against a server that answers by script.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/server_builder.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;

// Answers calls with the statuses of the script, in order, and what comes after them with success.
class ScriptedService : public v1::GenerationService::Service {
 public:
  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        v1::GenerateResponse* response) override {
    deadline = absl::FromChrono(context->deadline());
    response->set_answer_text(request->generation().text());
    response->set_thinking_text(std::string(padding_bytes, 'x'));
    return Next();
  }

  grpc::Status GenerateStream(grpc::ServerContext* context, const v1::GenerateStreamRequest* /*request*/,
                              grpc::ServerWriter<v1::GenerateStreamResponse>* writer) override {
    v1::GenerateStreamResponse message;
    for (int i = 0; i < messages_before_status; ++i) {
      message.mutable_delta()->set_text(std::to_string(i));
      writer->Write(message);
    }
    while (hangs && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return Next();
  }

  std::deque<grpc::Status> script;
  int messages_before_status = 0;
  int padding_bytes = 0;
  bool hangs = false;
  int calls = 0;
  absl::Time deadline;

 private:
  grpc::Status Next() {
    ++calls;
    if (script.empty()) return grpc::Status::OK;
    const grpc::Status status = script.front();
    script.pop_front();
    return status;
  }
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    client_ = std::make_unique<Client>(Client::Connect("127.0.0.1:" + std::to_string(port)));
    generation_.set_text("1+1=?");
  }

  std::string Stream(absl::Status& status, const CallOptions& options = {}) {
    std::string text;
    status = client_->GenerateStream(
        generation_, [&](const v1::GenerateStreamResponse& message) { text += message.delta().text() + ";"; },
        options);
    return text;
  }

  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
  v1::Generation generation_;
};

TEST_F(ClientTest, RequestAndAnswerArrive) {
  const auto response = client_->Generate(generation_);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->answer_text(), "1+1=?");
  EXPECT_EQ(service_.deadline, absl::FromChrono(std::chrono::system_clock::time_point::max()));
}

TEST_F(ClientTest, TimeoutsBecomeDeadlines) {
  const absl::Time before = absl::Now();
  ASSERT_TRUE(client_->Generate(generation_, {absl::Seconds(20), nullptr}).ok());
  EXPECT_GT(service_.deadline, before + absl::Seconds(15));
  EXPECT_LT(service_.deadline, absl::Now() + absl::Seconds(25));
}

TEST_F(ClientTest, CallsThatWereNotTakenAreRepeated) {
  const grpc::Status unavailable(grpc::StatusCode::UNAVAILABLE, "draining");
  service_.script = {unavailable, unavailable};
  EXPECT_TRUE(client_->Generate(generation_).ok());
  EXPECT_EQ(service_.calls, 3);
  service_.script = {unavailable};
  service_.messages_before_status = 0;
  absl::Status status;
  EXPECT_EQ(Stream(status), "");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.calls, 5);
}

TEST_F(ClientTest, NothingElseIsRepeated) {
  service_.script = {grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full")};
  EXPECT_EQ(client_->Generate(generation_).status(), absl::ResourceExhaustedError("full"));
  EXPECT_EQ(service_.calls, 1);
  service_.script = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost on the way")};
  service_.messages_before_status = 2;  // it has begun
  absl::Status status;
  EXPECT_EQ(Stream(status), "0;1;");
  EXPECT_EQ(status, absl::UnavailableError("lost on the way"));
  EXPECT_EQ(service_.calls, 2);
}

TEST_F(ClientTest, DetailsOfErrorsAreRead) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  info.set_reason("QUEUE_FULL");
  details.add_details()->PackFrom(info);
  google::rpc::BadRequest bad_request;
  bad_request.add_field_violations()->set_field("generation.a");
  bad_request.add_field_violations()->set_field("generation.b");
  details.add_details()->PackFrom(bad_request);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  details.add_details()->PackFrom(retry);
  service_.script = {grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", details.SerializeAsString())};
  const ErrorDetails read = DetailsOf(client_->Generate(generation_).status());
  EXPECT_EQ(read.reason, "QUEUE_FULL");
  EXPECT_EQ(read.field, "generation.a");
  EXPECT_THAT(read.fields, ElementsAre("generation.a", "generation.b"));
  EXPECT_EQ(read.retry_delay, absl::Seconds(1.5));
}

TEST_F(ClientTest, ErrorsWithoutDetailsHaveNone) {
  service_.script = {grpc::Status(grpc::StatusCode::INTERNAL, "x", "no details")};
  const ErrorDetails read = DetailsOf(client_->Generate(generation_).status());
  EXPECT_EQ(read.reason, "");
  EXPECT_EQ(read.field, "");
  EXPECT_FALSE(read.retry_delay.has_value());
  EXPECT_EQ(DetailsOf(absl::OkStatus()).reason, "");
}

TEST_F(ClientTest, CancellingEndsACall) {
  service_.hangs = true;
  service_.messages_before_status = 1;
  CallControl control;
  absl::Notification received;
  std::thread canceller([&] {
    received.WaitForNotification();
    control.Cancel();
  });
  std::string text;
  const absl::Status status = client_->GenerateStream(generation_,
                                                      [&](const v1::GenerateStreamResponse& message) {
                                                        text += message.delta().text() + ";";
                                                        received.Notify();
                                                      },
                                                      {absl::InfiniteDuration(), &control});
  EXPECT_EQ(text, "0;");
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  canceller.join();
}

TEST_F(ClientTest, ACallThatIsCancelledBeforehandIsNotMade) {
  CallControl control;
  control.Cancel();
  EXPECT_EQ(client_->Generate(generation_, {absl::InfiniteDuration(), &control}).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(service_.calls, 0);
  control.Cancel();  // and after it
}

TEST_F(ClientTest, LargeAnswersArrive) {
  service_.padding_bytes = 5 << 20;
  EXPECT_TRUE(client_->Generate(generation_).ok());
}

}  // namespace
}  // namespace nestor
