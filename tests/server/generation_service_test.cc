#include "server/generation_service.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "engine/text/utf8.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"
#include "tests/server/server_fixture.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GenerationServiceTest : public ServerFixture {};

TEST_F(GenerationServiceTest, ThinksSmallAndAnswersLarge) {
  Start();
  v1::Generation generation = Ask();
  generation.mutable_thinking()->set_submodel("0.5m");
  generation.mutable_answer()->set_submodel("2.5m");
  const Streamed streamed = Stream(generation);
  ASSERT_TRUE(streamed.status.ok()) << streamed.status;
  EXPECT_EQ(streamed.answer, "4 17 49 50 79");
  EXPECT_THAT(streamed.thinking, HasSubstr("49 | 79 50"));
  EXPECT_EQ(streamed.start().plan().thinking_submodel(), "0.5m");
  EXPECT_EQ(streamed.start().plan().answer_submodel(), "2.5m");
  EXPECT_EQ(streamed.start().plan().handoff(), v1::HANDOFF_RECOMPUTE);
  EXPECT_EQ(streamed.start().model(), "abacus");
  const v1::GenerationEnd& end = streamed.end();
  EXPECT_EQ(end.finish_reason(), v1::FINISH_REASON_STOP);
  ASSERT_EQ(end.usage().submodels_size(), 2);
  EXPECT_EQ(end.usage().submodels(0).submodel(), "0.5m");
  EXPECT_EQ(end.usage().submodels(0).generated_tokens(), end.usage().thinking().generated_tokens());
  EXPECT_TRUE(end.timings().has_time_to_first_answer_token());
}

// For random requests: the stream's texts put together are the unary answer, every message is valid UTF-8,
// the order is start, thinking, answer, end.
TEST_F(GenerationServiceTest, StreamsAreTheUnaryAnswerInPieces) {
  Start();
  std::mt19937 random(3);
  for (int i = 0; i < 12; ++i) {
    v1::Generation generation = Ask(i % 2 ? "12+30=?" : "Sort 5 3 9 in descending order.");
    generation.mutable_sampling()->set_temperature(1.5f);  // nonsense, with bytes that are no characters
    generation.mutable_sampling()->set_seed(random());
    generation.set_max_output_tokens(60);
    generation.set_ignore_eos(true);
    generation.mutable_thinking()->set_max_thinking_tokens(20);
    generation.set_top_logprobs(i % 3);
    if (i % 4 == 0) generation.add_stop_strings("1");
    const Streamed streamed = Stream(generation);
    const auto unary = client_->Generate(generation);
    ASSERT_TRUE(streamed.status.ok() && unary.ok()) << streamed.status << unary.status();
    EXPECT_EQ(streamed.thinking, unary->thinking_text());
    EXPECT_EQ(streamed.answer, unary->answer_text());
    EXPECT_EQ(streamed.end().usage().SerializeAsString(), unary->end().usage().SerializeAsString());
    int tokens = 0, stage = 0;  // start, thinking, answer, end
    for (const v1::GenerateStreamResponse& message : streamed.messages) {
      const int next = message.has_start() ? 0 : message.has_end() ? 3 : message.delta().phase();
      EXPECT_GE(next, stage);
      stage = next;
      EXPECT_FALSE(FirstInvalidUtf8(message.delta().text()).has_value());
      tokens += message.delta().tokens_size();
    }
    EXPECT_EQ(stage, 3);
    EXPECT_EQ(tokens, unary->thinking_tokens_size() + unary->answer_tokens_size());
  }
}

TEST_F(GenerationServiceTest, TokensAndLogprobsComeOnRequest) {
  Start();
  v1::Generation generation = Ask("1+1=?");
  EXPECT_EQ(client_->Generate(generation)->answer_tokens_size(), 0);
  generation.set_return_token_ids(true);
  const auto ids = client_->Generate(generation);
  ASSERT_GT(ids->answer_tokens_size(), 0);
  EXPECT_FALSE(ids->answer_tokens(0).has_logprob());
  generation.set_top_logprobs(3);
  const auto logprobs = client_->Generate(generation);
  ASSERT_EQ(logprobs->answer_tokens(0).top_logprobs_size(), 3);
  EXPECT_EQ(logprobs->answer_tokens(0).top_logprobs(0).id(), logprobs->answer_tokens(0).id());  // greedy
  EXPECT_LE(logprobs->answer_tokens(0).logprob(), 0);
}

TEST_F(GenerationServiceTest, BudgetsPickTheSubmodel) {
  Start();
  v1::Generation generation = Ask("1+1=?");
  const auto answering = [&] { return client_->Generate(generation)->start().plan().answer_submodel(); };
  EXPECT_EQ(answering(), "2.5m");
  generation.mutable_budget()->set_max_total_parameters(2'473'279);
  EXPECT_EQ(answering(), "1.2m");
  generation.mutable_budget()->set_max_active_parameters(500'000);
  EXPECT_EQ(answering(), "0.5m");
  generation.clear_budget();
  generation.mutable_thinking()->mutable_budget()->set_max_memory_bytes(5'000'000);
  const auto response = client_->Generate(generation);
  EXPECT_EQ(response->start().plan().thinking_submodel(), "1.2m");
  EXPECT_EQ(response->start().plan().answer_submodel(), "2.5m");
  generation.mutable_answer()->mutable_budget()->set_max_total_parameters(1000);
  const absl::Status refused = client_->Generate(generation).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailsOf(refused).reason, "BUDGET_TOO_SMALL");
  generation.set_budget_policy(v1::BUDGET_POLICY_BEST_EFFORT);
  EXPECT_TRUE(client_->Generate(generation)->start().plan().budget_missed());
}

TEST_F(GenerationServiceTest, LatencyBudgetsAreRefusedNotIgnored) {
  Start();
  v1::Generation generation = Ask();
  generation.mutable_budget()->mutable_latency()->mutable_max_end_to_end()->set_seconds(1);
  const absl::Status status = client_->Generate(generation).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(DetailsOf(status).reason, "LATENCY_BUDGET_UNSUPPORTED");
  EXPECT_EQ(DetailsOf(status).field, "generation.budget.latency");
}

// Sixteen streams at once with different submodels, seeds and sampling: each is what it is alone.
TEST_F(GenerationServiceTest, SixteenStreamsAreWhatTheyAreAlone) {
  Start();
  constexpr int kStreams = 16;
  const char* const names[] = {"2.5m", "1.2m", "0.5m"};
  std::vector<v1::Generation> generations;
  std::vector<Streamed> alone;
  for (int i = 0; i < kStreams; ++i) {
    v1::Generation generation = Ask(i % 2 ? "12*3=?" : "Sort 8 6 7 5 3 0 9 in ascending order.");
    generation.mutable_thinking()->set_submodel(names[i % 3]);
    generation.mutable_answer()->set_submodel(names[i / 3 % 3]);
    generation.set_handoff(i % 4 == 0 ? v1::HANDOFF_TRANSPLANT : v1::HANDOFF_RECOMPUTE);
    generation.mutable_sampling()->set_temperature(0.4f * static_cast<float>(i % 4));
    generation.mutable_sampling()->set_seed(100 + i);
    generation.set_max_output_tokens(80);
    generations.push_back(generation);
    alone.push_back(Stream(generation));
  }
  std::vector<Streamed> together(kStreams);
  std::vector<std::thread> threads;
  for (int i = 0; i < kStreams; ++i) threads.emplace_back([&, i] { together[i] = Stream(generations[i]); });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kStreams; ++i) {
    ASSERT_TRUE(together[i].status.ok()) << together[i].status;
    EXPECT_EQ(together[i].thinking, alone[i].thinking) << i;
    EXPECT_EQ(together[i].answer, alone[i].answer) << i;
  }
  ExpectIdle();
}

// A thousand requests, unary and streaming, cancelled at random moments: queued, being read, prefilling,
// decoding.
TEST_F(GenerationServiceTest, CancelledRequestsLeaveNothingBehind) {
  EngineOptions options;
  options.sequences_max = 8;
  options.queue_max = 1000;
  Start(options);
  constexpr int kThreads = 8, kRequests = 125;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kRequests; ++i) {
        CallControl control;
        std::thread canceller([&, delay = random() % 12] {
          absl::SleepFor(absl::Milliseconds(delay));
          control.Cancel();
        });
        const CallOptions call{absl::InfiniteDuration(), &control};
        const absl::Status status =
            i % 2 ? client_->Generate(Endless(), call).status() : Stream(Endless(), call).status;
        EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
        canceller.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectIdle();
  EXPECT_EQ(client_->Generate(Ask("1+1=?"))->answer_text(), "2");
}

TEST_F(GenerationServiceTest, TheDeadlineOfTheCallEndsTheRequest) {
  Start();
  const Streamed streamed = Stream(Endless(), {absl::Milliseconds(200), nullptr});
  EXPECT_EQ(streamed.status.code(), absl::StatusCode::kDeadlineExceeded);
  ExpectIdle();
}

TEST_F(GenerationServiceTest, AFullQueueRefusesAtOnceWithRetryInfo) {
  EngineOptions options;
  options.sequences_max = 1;
  options.queue_max = 1;
  Start(options);
  CallControl control;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { Stream(Endless(), {absl::InfiniteDuration(), &control}); });
  AwaitRunning(1);
  threads.emplace_back([&] { Stream(Endless(), {absl::InfiniteDuration(), &control}); });
  while (engine_->load().queued < 1) absl::SleepFor(absl::Milliseconds(1));
  const absl::Status status = client_->Generate(Ask()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailsOf(status).reason, "QUEUE_FULL");
  EXPECT_TRUE(DetailsOf(status).retry_delay.has_value());
  server_.reset();  // cancels the rest
  for (std::thread& thread : threads) thread.join();
}

// A bad request, the code it gets and the field it names.
struct BadRequest {
  const char* field;
  std::function<void(v1::Generation&)> spoil;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

TEST_F(GenerationServiceTest, BadInputNamesTheFieldAndHarmsNobody) {
  Start();
  Streamed bystander;
  std::thread other([&] { bystander = Stream(Ask()); });
  const std::vector<BadRequest> bad = {
      {"prompt", [](auto& g) { g.clear_prompt(); }},
      {"text", [](auto& g) { g.set_text(""); }},
      {"token_ids.ids", [](auto& g) { g.mutable_token_ids(); }},
      {"token_ids.ids[0]", [](auto& g) { g.mutable_token_ids()->add_ids(384); }},
      {"token_ids.ids[0]", [](auto& g) { g.mutable_token_ids()->add_ids(-1); }},
      {"text", [](auto& g) { g.set_text(std::string(5'000, '7')); }},       // too many tokens
      {"text", [](auto& g) { g.set_text(std::string(10'000'000, '7')); }},  // not even tokenized
      {"token_ids.ids",
       [](auto& g) {
         for (int i = 0; i < 4096; ++i) g.mutable_token_ids()->add_ids(20);
       }},
      {"chat", [](auto& g) { g.mutable_chat()->add_tools_json("{}"); }},
      {"chat.messages", [](auto& g) { g.mutable_chat()->clear_messages(); }},
      {"chat.messages[0].role", [](auto& g) { g.mutable_chat()->mutable_messages(0)->clear_role(); }},
      {"chat.messages[0].tool_calls",
       [](auto& g) { g.mutable_chat()->mutable_messages(0)->add_tool_calls(); }},
      {"chat.messages[0].reasoning_content",
       [](auto& g) { g.mutable_chat()->mutable_messages(0)->set_reasoning_content("x"); }},
      {"chat.tools_json[0]", [](auto& g) { g.mutable_chat()->add_tools_json("[1"); }},
      {"budget.max_total_parameters", [](auto& g) { g.mutable_budget()->set_max_total_parameters(0); }},
      {"thinking.budget.max_memory_bytes",
       [](auto& g) { g.mutable_thinking()->mutable_budget()->set_max_memory_bytes(-5); }},
      {"thinking.max_thinking_tokens", [](auto& g) { g.mutable_thinking()->set_max_thinking_tokens(-1); }},
      {"thinking.submodel", [](auto& g) { g.mutable_thinking()->set_submodel("9m"); }},
      {"answer.submodel", [](auto& g) { g.mutable_answer()->set_submodel(""); }},
      {"thinking.enabled",
       [](auto& g) {
         g.set_text("<think>\n");
         g.mutable_thinking()->set_enabled(false);
       }},
      {"handoff", [](auto& g) { g.set_handoff(static_cast<v1::Handoff>(7)); }},
      {"budget_policy", [](auto& g) { g.set_budget_policy(static_cast<v1::BudgetPolicy>(7)); }},
      {"max_output_tokens", [](auto& g) { g.set_max_output_tokens(0); }},
      {"max_output_tokens", [](auto& g) { g.set_max_output_tokens(1 << 30); }},
      {"sampling.temperature", [](auto& g) { g.mutable_sampling()->set_temperature(NAN); }},
      {"sampling.temperature", [](auto& g) { g.mutable_sampling()->set_temperature(-1); }},
      {"sampling.top_k", [](auto& g) { g.mutable_sampling()->set_top_k(-1); }},
      {"sampling.top_p", [](auto& g) { g.mutable_sampling()->set_top_p(0); }},
      {"sampling.min_p", [](auto& g) { g.mutable_sampling()->set_min_p(1); }},
      {"sampling.repetition_penalty", [](auto& g) { g.mutable_sampling()->set_repetition_penalty(0); }},
      {"sampling.presence_penalty", [](auto& g) { g.mutable_sampling()->set_presence_penalty(3); }},
      {"sampling.frequency_penalty", [](auto& g) { g.mutable_sampling()->set_frequency_penalty(-INFINITY); }},
      {"sampling.logit_bias", [](auto& g) { (*g.mutable_sampling()->mutable_logit_bias())[384] = 1; }},
      {"sampling.logit_bias", [](auto& g) { (*g.mutable_sampling()->mutable_logit_bias())[3] = 101; }},
      {"stop_strings[0]", [](auto& g) { g.add_stop_strings(""); }},
      {"stop_strings",
       [](auto& g) {
         for (int i = 0; i < 17; ++i) g.add_stop_strings("x");
       }},
      {"top_logprobs", [](auto& g) { g.set_top_logprobs(21); }},
      {"request_id", [](auto& g) { g.set_request_id(std::string(129, 'x')); }},
      {"model", [](auto& g) { g.set_model("other"); }, absl::StatusCode::kNotFound},
  };
  for (const BadRequest& request : bad) {
    v1::Generation generation = Ask();
    request.spoil(generation);
    for (const absl::Status& status : {client_->Generate(generation).status(), Stream(generation).status}) {
      EXPECT_EQ(status.code(), request.code) << request.field << ": " << status;
      EXPECT_EQ(DetailsOf(status).field, std::string("generation.") + request.field) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("expected")) << request.field;
      EXPECT_FALSE(DetailsOf(status).reason.empty());
    }
  }
  other.join();
  EXPECT_TRUE(bystander.status.ok());
  EXPECT_EQ(bystander.answer, "4 17 49 50 79");
  ExpectIdle();
}

TEST_F(GenerationServiceTest, OneAnswerNamesEveryFieldAtFault) {
  Start();
  v1::Generation generation = Ask();
  generation.set_max_output_tokens(0);
  generation.mutable_sampling()->set_top_p(7);
  const absl::Status status = client_->Generate(generation).status();
  EXPECT_EQ(status.message(),
            "max_output_tokens: expected 1 or more, found 0; sampling.top_p: expected above 0 to 1, found 7");
  EXPECT_THAT(DetailsOf(status).fields,
              ElementsAre("generation.max_output_tokens", "generation.sampling.top_p"));
}

// Refusals come without a start, so that clients may repeat them.
TEST_F(GenerationServiceTest, WhatIsRefusedDoesNotStart) {
  Start();
  engine_->StopAdmission();
  const Streamed streamed = Stream(Ask(), {absl::Milliseconds(300), nullptr});
  EXPECT_FALSE(streamed.status.ok());
  EXPECT_TRUE(streamed.messages.empty());
}

// What only a client with other stubs can send.
TEST_F(GenerationServiceTest, RequestsThatCannotBeReadGetAnAnswerThatSaysWhy) {
  Start();
  const auto send = [&](const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    const auto call =
        stub.PrepareUnaryCall(&context, "/nestor.v1.GenerationService/" + method, {&slice, 1}, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  };
  for (const std::string method : {"Generate", "GenerateStream"}) {
    const grpc::Status garbage = send(method, "\xff\xff\xff");
    EXPECT_EQ(garbage.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_THAT(garbage.error_message(), HasSubstr("found 3 bytes that are none"));
    const grpc::Status not_utf8 = send(method, "\x0a\x03\x0a\x01\xff");
    EXPECT_EQ(not_utf8.error_message(), "generation.text: expected UTF-8, found other bytes") << method;
    EXPECT_EQ(send(method, "").error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
  }
  EXPECT_EQ(client_->Generate(Ask("1+1=?"))->answer_text(), "2");
}

TEST_F(GenerationServiceTest, DeeplyNestedToolsHarmNobody) {
  Start();
  v1::Generation generation = Ask();
  generation.mutable_chat()->add_tools_json(R"({"name":"f","parameters":{"properties":{"a":{"enum":)" +
                                            std::string(200'000, '[') + std::string(200'000, ']') + "}}}}");
  EXPECT_EQ(DetailsOf(client_->Generate(generation).status()).field, "generation.chat.tools_json[0]");
  EXPECT_EQ(client_->Generate(Ask("1+1=?"))->answer_text(), "2");
}

// The engine does not wait for a client that does not read; what it missed comes in larger pieces.
TEST_F(GenerationServiceTest, ASlowReaderGetsTheSameText) {
  constexpr int kTokens = 300;
  Start();
  v1::Generation generation = Endless();
  generation.set_top_logprobs(20);  // more than the transport's buffers hold
  generation.set_max_output_tokens(kTokens);
  const auto unary = client_->Generate(generation);
  ASSERT_TRUE(unary.ok()) << unary.status();
  std::string answer, thinking;
  int tokens = 0;
  bool waited = false;
  const absl::Status status =
      client_->GenerateStream(generation, [&](const v1::GenerateStreamResponse& message) {
        if (!waited) ExpectIdle();  // the first message is held until the engine has done it all
        waited = true;
        (message.delta().phase() == v1::PHASE_THINKING ? thinking : answer) += message.delta().text();
        tokens += message.delta().tokens_size();
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(thinking, unary->thinking_text());
  EXPECT_EQ(answer, unary->answer_text());
  EXPECT_EQ(tokens, kTokens);
}

TEST_F(GenerationServiceTest, WaitingRequestsAreCancelledAndPassTheirDeadline) {
  EngineOptions options;
  options.sequences_max = 1;
  Start(options);
  CallControl running, waiting;
  std::thread first([&] { Stream(Endless(), {absl::InfiniteDuration(), &running}); });
  AwaitRunning(1);
  EXPECT_EQ(client_->Generate(Ask(), {absl::Milliseconds(100), nullptr}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  Streamed second;
  std::thread other([&] { second = Stream(Endless(), {absl::InfiniteDuration(), &waiting}); });
  while (engine_->load().queued < 1) absl::SleepFor(absl::Milliseconds(1));
  waiting.Cancel();
  other.join();
  EXPECT_EQ(second.status.code(), absl::StatusCode::kCancelled);
  running.Cancel();
  first.join();
  ExpectIdle();
}

TEST_F(GenerationServiceTest, TooManyRequestsBeingReadAreRefused) {
  ServerOptions options;
  options.pending_max = 1;
  Start({}, options);
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int request = 0; request < 20; ++request) {
        const absl::Status status = client_->Generate(Ask("1+1=?")).status();
        if (status.ok()) continue;
        EXPECT_EQ(DetailsOf(status).reason, "TOO_MANY_PENDING") << status;
        EXPECT_TRUE(DetailsOf(status).retry_delay.has_value());
        ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(refused, 0);
  ExpectIdle();
}

TEST_F(GenerationServiceTest, MessagesBeyondTheLimitAreRefused) {
  ServerOptions options;
  options.receive_bytes_max = 1000;
  Start({}, options);
  EXPECT_EQ(client_->Generate(Ask(std::string(2000, 'x'))).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(GenerationServiceTest, WhatDoesNotThinkTakesNoLimitsForThinking) {
  Start();
  v1::Generation generation = Ask("1+1=?");
  generation.mutable_thinking()->set_enabled(false);
  EXPECT_TRUE(client_->Generate(generation).ok());
  generation.mutable_thinking()->set_submodel("zzz");
  const absl::Status status = client_->Generate(generation).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).field, "generation.thinking.submodel");
}

TEST_F(GenerationServiceTest, ChatsOfAnotherTemplateAreRefusedAndTextsServed) {
  CheckpointEditor editor(AbacusFolder());
  editor.Write("chat_template.jinja", "{{ messages[0].content }}");
  auto engine = *Engine::Load(editor.directory(), {});
  engine->Start();
  ServerOptions options;
  options.address = "";
  const auto server = *Server::Start(*engine, options);
  Client client(server->InProcessChannel());
  const absl::Status status = client.Generate(Ask("1+1=?")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(DetailsOf(status).reason, "CHAT_TEMPLATE_UNSUPPORTED");
  EXPECT_EQ(DetailsOf(status).field, "generation.chat");
  v1::Generation text;
  text.set_text("1+1=?");
  text.set_max_output_tokens(3);
  EXPECT_TRUE(client.Generate(text).ok());
}

TEST_F(GenerationServiceTest, SeedsRepeatAndAreEchoed) {
  Start();
  v1::Generation generation = Ask();
  generation.mutable_sampling()->set_temperature(1.5f);
  const auto first = client_->Generate(generation), second = client_->Generate(generation);
  EXPECT_NE(first->start().seed(), second->start().seed());
  generation.mutable_sampling()->set_seed(first->start().seed());
  const auto again = client_->Generate(generation);
  EXPECT_EQ(again->thinking_text(), first->thinking_text());
  EXPECT_EQ(again->answer_text(), first->answer_text());
}

}  // namespace
}  // namespace nestor
