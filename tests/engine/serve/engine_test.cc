// The engine on models/abacus, driven by hand: one RunOnce is one step.
#include "engine/serve/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <random>

#include "engine/base/error_detail.h"
#include "engine/base/json.h"
#include "engine/serve/scheduler.h"
#include "tests/engine/checkpoint/checkpoint_editor.h"
#include "tests/engine/serve/recording_listener.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;

constexpr int kLarge = 0, kMedium = 1, kSmall = 2;
constexpr char kModel[] = NESTOR_SOURCE_DIR "/models/abacus";
constexpr char kPrompt[] =
    "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nSort 17 4 79 50 49 in ascending order.<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n";

class EngineTest : public ::testing::Test {
 protected:
  void Load(const EngineOptions& options = {}) {
    auto engine = Engine::Load(kModel, options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  GenerationRequest Request(int thinking, int answer, const std::string& prompt = kPrompt) {
    GenerationRequest request;
    request.prompt_tokens = *engine_->tokenizer().Encode(prompt);
    request.plan.think = true;
    request.plan.thinking_submodel = thinking;
    request.plan.answer_submodel = answer;
    request.plan.max_output_tokens = 200;
    return request;
  }

  std::shared_ptr<RecordingListener> Submit(const GenerationRequest& request) {
    auto listener = std::make_shared<RecordingListener>();
    const auto handle = engine_->Submit(request, listener);
    EXPECT_TRUE(handle.ok()) << handle.status();
    last_handle_ = handle.value_or(0);
    return listener;
  }

  // Runs until nothing is left to do.
  void Drain() {
    for (int steps = 0; engine_->RunOnce(); ++steps) ASSERT_LT(steps, 100000);
  }

  std::shared_ptr<RecordingListener> Run(const GenerationRequest& request) {
    auto listener = Submit(request);
    Drain();
    EXPECT_TRUE(listener->outcome.has_value());
    return listener;
  }

  void ExpectNothingHeld() {
    const EngineLoad load = engine_->load();
    EXPECT_EQ(load.queued + load.running, 0);
    EXPECT_EQ(load.slots_free, load.slots_total);
    EXPECT_EQ(load.pages_free, load.pages_total);
  }

  // A request with random plan, sampling and limits.
  GenerationRequest RandomRequest(std::mt19937& random) {
    const auto draw = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    std::string numbers;
    for (int i = draw(2, 40); i > 0; --i) numbers += " " + std::to_string(draw(1, 99));
    GenerationRequest request =
        Request(draw(0, 2), draw(0, 2),
                "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nSort" + numbers +
                    " in ascending order.<|im_end|>\n<|im_start|>assistant\n<think>\n");
    if (draw(0, 1)) request.plan.handoff = Handoff::kTransplant;
    if (draw(0, 1)) request.plan.max_thinking_tokens = draw(0, 40);
    request.plan.max_output_tokens = draw(1, 90);
    request.sampling.temperature = draw(0, 2) * 0.6f;
    request.sampling.top_p = draw(0, 1) ? 0.9f : 1.0f;
    request.sampling.repetition_penalty = draw(0, 1) ? 1.1f : 1.0f;
    request.sampling.seed = random();
    return request;
  }

  std::unique_ptr<Engine> engine_;
  RequestHandle last_handle_ = 0;
};

// The texts were computed by an independent implementation, one request at a time.
TEST_F(EngineTest, GreedyTextsAreThoseOfTheReference) {
  Load();
  std::ifstream lines(std::string(kModel) + "/eval.jsonl");
  std::string line;
  for (int problem = 0; problem < 6 && std::getline(lines, line); ++problem) {
    const Json json = *ParseJson(line, "eval.jsonl");
    for (const int submodel : {kLarge, kMedium, kSmall}) {
      for (const std::string limit : {"none", "16"}) {
        GenerationRequest request = Request(submodel, submodel, json.at("prompt"));
        if (limit != "none") request.plan.max_thinking_tokens = std::stoi(limit);
        const auto result = Run(request);
        const std::string key = engine_->facts().submodels[submodel].name + "/" + limit;
        std::string text = result->thinking;
        if (result->outcome->thinking_truncated) text += "\n";
        EXPECT_EQ(text + "</think>" + result->answer + "<|im_end|>", json.at("greedy").at(key))
            << problem << key;
      }
    }
  }
}

TEST_F(EngineTest, ThinkingLimitsAreExactAndAnAnswerFollows) {
  Load();
  for (const int limit : {0, 1, 7, 16}) {
    GenerationRequest request = Request(kSmall, kLarge);
    request.plan.max_thinking_tokens = limit;
    const Outcome outcome = *Run(request)->outcome;
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_TRUE(outcome.thinking_truncated);
    EXPECT_EQ(outcome.usage.thinking.generated_tokens, limit);
    EXPECT_EQ(outcome.usage.forced_tokens, 2);
    EXPECT_GE(outcome.usage.answer.generated_tokens, 1);
  }
}

TEST_F(EngineTest, OutputLimitCountsBothPhasesAndLeavesRoomForAnAnswer) {
  Load();
  GenerationRequest request = Request(kLarge, kLarge);
  request.plan.max_output_tokens = 5;
  const auto result = Run(request);
  EXPECT_EQ(result->outcome->finish_reason, FinishReason::kLength);
  EXPECT_EQ(result->outcome->usage.thinking.generated_tokens, 4);
  EXPECT_EQ(result->outcome->usage.answer.generated_tokens, 1);
  EXPECT_EQ(result->tokens.size(), 5u);
}

TEST_F(EngineTest, RecomputeReadsEverythingAgainAndTransplantOneToken) {
  Load();
  GenerationRequest request = Request(kMedium, kLarge);
  const Usage recompute = Run(request)->outcome->usage;
  request.plan.handoff = Handoff::kTransplant;
  const Usage transplant = Run(request)->outcome->usage;
  // Prompt, thinking, `</think>`, then the answer but for its last token, whose successor is the end of
  // sequence.
  EXPECT_EQ(recompute.answer.computed_tokens, recompute.prompt_tokens + recompute.thinking.generated_tokens +
                                                  1 + recompute.answer.generated_tokens);
  EXPECT_EQ(transplant.answer.computed_tokens, 1 + transplant.answer.generated_tokens);
  EXPECT_EQ(transplant.thinking.computed_tokens,
            transplant.prompt_tokens + transplant.thinking.generated_tokens);
}

TEST_F(EngineTest, ATransplantedThinkingPhaseMayBeEmpty) {
  Load();
  GenerationRequest request = Request(kMedium, kLarge);
  request.plan.handoff = Handoff::kTransplant;
  request.plan.max_thinking_tokens = 0;
  const Usage usage = Run(request)->outcome->usage;
  EXPECT_EQ(usage.thinking.computed_tokens, usage.prompt_tokens + 1);  // and the forced line break
}

TEST_F(EngineTest, StopStringsCutTheAnswerAcrossTokens) {
  Load();
  GenerationRequest request = Request(kLarge, kLarge);
  request.stop_strings = {"17 49", "nowhere"};
  const auto result = Run(request);
  EXPECT_EQ(result->answer, "4 ");
  EXPECT_EQ(result->outcome->finish_reason, FinishReason::kStopString);
  EXPECT_EQ(result->outcome->stop_string, "17 49");
  EXPECT_THAT(result->thinking, HasSubstr("17 |"));  // thinking is not searched
}

TEST_F(EngineTest, WithoutThinkingEverythingIsAnswer) {
  Load();
  GenerationRequest request = Request(kLarge, kLarge, "Sort 3 1 2");
  request.plan.think = false;
  request.plan.max_output_tokens = 4;
  request.ignore_eos = true;
  const auto result = Run(request);
  EXPECT_EQ(result->thinking, "");
  EXPECT_EQ(result->outcome->usage.answer.generated_tokens, 4);
  EXPECT_EQ(result->outcome->usage.thinking.computed_tokens, 0);
}

// Batch invariance: the same request alone and in random company, in steps of different sizes, gives the same
// tokens.
TEST_F(EngineTest, CompanyChangesNothing) {
  std::mt19937 random(7);
  Load();
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<int32_t>> alone;
  for (int i = 0; i < 24; ++i) {
    requests.push_back(RandomRequest(random));
    alone.push_back(Run(requests.back())->tokens);
  }
  for (const int rows_max : {64, 100, 256}) {
    EngineOptions options;
    options.rows_max = rows_max;
    options.sequences_max = 16;
    Load(options);
    std::vector<std::shared_ptr<RecordingListener>> listeners;
    for (const GenerationRequest& request : requests) {
      listeners.push_back(Submit(request));
      for (int steps = static_cast<int>(random() % 4); steps > 0; --steps) engine_->RunOnce();
    }
    Drain();
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(listeners[i]->tokens, alone[i]) << "request " << i;
    ExpectNothingHeld();
  }
}

// Too few pages for all: requests give way, are computed again, and nobody can tell from the output.
TEST_F(EngineTest, GivingWayLosesNothing) {
  std::mt19937 random(11);
  Load();
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<int32_t>> alone;
  for (int i = 0; i < 8; ++i) {
    requests.push_back(RandomRequest(random));
    requests.back().plan.max_output_tokens = 90;
    requests.back().ignore_eos = true;
    alone.push_back(Run(requests.back())->tokens);
  }
  EngineOptions options;
  options.sequences_max = 8;
  options.cache_bytes = 8 * 186880 + 24 * 16 * 1024;  // 24 pages of 16 tokens
  Load(options);
  std::vector<std::shared_ptr<RecordingListener>> listeners;
  for (const GenerationRequest& request : requests) listeners.push_back(Submit(request));
  Drain();
  int preemptions = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(listeners[i]->tokens, alone[i]) << "request " << i;
    preemptions += listeners[i]->outcome->usage.preemptions;
  }
  EXPECT_GT(preemptions, 0);
  ExpectNothingHeld();
}

TEST_F(EngineTest, CancelFreesWithinOneStepWhereverTheRequestIs) {
  EngineOptions options;
  options.sequences_max = 1;
  options.rows_max = kPrefillGrid;
  Load(options);
  std::string text(2000, '7');
  for (const int steps : {0, 1, 2, 60}) {  // not yet taken, prefilling, prefilling, decoding
    const auto listener = Submit(Request(kLarge, kLarge, text + kPrompt));
    const RequestHandle running = last_handle_;
    const auto queued = Submit(Request(kLarge, kLarge));
    for (int i = 0; i < steps; ++i) engine_->RunOnce();
    engine_->Cancel(last_handle_);
    engine_->Cancel(running);
    engine_->RunOnce();
    EXPECT_EQ(listener->outcome->status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(queued->outcome->status.code(), absl::StatusCode::kCancelled);
    EXPECT_TRUE(queued->tokens.empty());
    ExpectNothingHeld();
    engine_->Cancel(running);  // once more is nothing
  }
}

TEST_F(EngineTest, DeadlinesEndQueuedAndRunningRequests) {
  absl::Time now = absl::UnixEpoch();
  EngineOptions options;
  options.sequences_max = 1;
  options.clock = [&] { return now; };
  Load(options);
  GenerationRequest request = Request(kLarge, kLarge);
  request.deadline = now + absl::Seconds(2);
  const auto running = Submit(request), queued = Submit(request);
  engine_->RunOnce();
  now += absl::Seconds(1);
  engine_->RunOnce();
  EXPECT_FALSE(running->outcome || queued->outcome);
  now += absl::Seconds(1);
  engine_->RunOnce();
  EXPECT_EQ(running->outcome->status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(queued->outcome->status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(running->outcome->timings.total, absl::Seconds(2));
  ExpectNothingHeld();
}

TEST_F(EngineTest, HigherPriorityGoesFirst) {
  EngineOptions options;
  options.sequences_max = 1;
  Load(options);
  GenerationRequest request = Request(kSmall, kSmall);
  const auto first = Submit(request);
  engine_->RunOnce();
  const auto low = Submit(request);
  request.priority = 1;
  const auto high = Submit(request);
  while (!high->outcome) ASSERT_TRUE(engine_->RunOnce());
  EXPECT_TRUE(first->outcome);
  EXPECT_FALSE(low->outcome);
  Drain();
}

TEST_F(EngineTest, TheQueueIsBounded) {
  EngineOptions options;
  options.queue_max = 2;
  Load(options);
  const auto first = Submit(Request(kSmall, kSmall)), second = Submit(Request(kSmall, kSmall));
  const absl::Status status =
      engine_->Submit(Request(kSmall, kSmall), std::make_shared<RecordingListener>()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  EXPECT_TRUE(RetryDelayMsOf(status).has_value());
  Drain();
  EXPECT_TRUE(first->outcome->status.ok() && second->outcome->status.ok());
}

TEST_F(EngineTest, RefusesWhatItCannotRun) {
  Load();
  const auto field = [&](const GenerationRequest& request) {
    const absl::Status status = engine_->Submit(request, std::make_shared<RecordingListener>()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return FieldOf(status).value_or("");
  };
  GenerationRequest request = Request(kLarge, kLarge);
  request.prompt_tokens.clear();
  EXPECT_EQ(field(request), "prompt");
  request.prompt_tokens = {1, 384};
  EXPECT_EQ(field(request), "prompt");
  request.prompt_tokens = {1, -1};
  EXPECT_EQ(field(request), "prompt");
  request = Request(kLarge, kLarge);
  request.plan.max_output_tokens = 4096;
  EXPECT_EQ(field(request), "max_output_tokens");
  engine_->StopAdmission();
  EXPECT_EQ(engine_->Submit(Request(kLarge, kLarge), std::make_shared<RecordingListener>()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(EngineTest, DestructionEndsOpenRequests) {
  Load();
  const auto running = Submit(Request(kLarge, kLarge));
  engine_->RunOnce();
  const auto queued = Submit(Request(kLarge, kLarge));
  engine_.reset();
  EXPECT_EQ(running->outcome->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(queued->outcome->status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(EngineTest, OptionsAreChecked) {
  const auto message = [](const EngineOptions& options) {
    return std::string(Engine::Load(kModel, options).status().message());
  };
  EngineOptions options;
  options.rows_max = 63;
  EXPECT_EQ(message(options), "rows_max: expected 64 to 16384, found 63");
  options.rows_max = std::numeric_limits<int>::max();
  EXPECT_THAT(message(options), HasSubstr("rows_max: expected 64 to 16384, found 2147483647"));
  options = {};
  options.sequences_max = 0;
  EXPECT_THAT(message(options), HasSubstr("sequences_max"));
  options.sequences_max = 1'000'000;
  EXPECT_THAT(message(options), HasSubstr("sequences_max"));
  options = {};
  options.cache_bytes = 1000;
  EXPECT_THAT(message(options), HasSubstr("cache_bytes: expected at least"));
}

// More memory than the machine has ends the start, not the process.
TEST_F(EngineTest, ACacheBeyondAllMemoryIsAnError) {
  CheckpointEditor editor(AbacusFolder());
  editor.EditJson("config.json", [](Json& config) { config["max_position_embeddings"] = 1 << 28; });
  EngineOptions options;
  options.sequences_max = 4096;
  options.cache_bytes = int64_t{1} << 48;
  constexpr int64_t kCacheBytes = 35'185'137'532'928;  // what all sequences could fill
  // A kernel set to overcommit hands out any number of addresses.
  if (const std::unique_ptr<char, decltype(&std::free)> granted(static_cast<char*>(std::malloc(kCacheBytes)),
                                                                &std::free);
      granted != nullptr) {
    GTEST_SKIP() << "this machine grants any amount of memory";
  }
  const absl::Status status = Engine::Load(editor.directory(), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(StrCat("not enough memory for a cache of ", kCacheBytes, " bytes")));
}

TEST_F(EngineTest, AContextThatHoldsNothingIsAnError) {
  CheckpointEditor editor(AbacusFolder());
  editor.EditJson("config.json", [](Json& config) { config["max_position_embeddings"] = 3; });
  const absl::Status status = Engine::Load(editor.directory(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected a context of at least 4 tokens, found 3"));
  editor.EditJson("config.json", [](Json& config) { config["max_position_embeddings"] = 4; });
  EXPECT_TRUE(Engine::Load(editor.directory(), {}).ok());
}

TEST_F(EngineTest, AnotherChatTemplateIsNotRenderedAsIfItWereOurs) {
  CheckpointEditor editor(AbacusFolder());
  editor.Write("chat_template.jinja", "{{ messages[0].content }}");
  const auto engine = Engine::Load(editor.directory(), {});
  ASSERT_TRUE(engine.ok()) << engine.status();  // texts and tokens are served
  EXPECT_EQ((*engine)->chat_status().code(), absl::StatusCode::kUnimplemented);
  editor.Remove("chat_template.jinja");
  editor.Write("tokenizer_config.json", "{\"cut");
  EXPECT_EQ(Engine::Load(editor.directory(), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, FactsSayWhatTheModelIs) {
  Load();
  const ModelFacts& facts = engine_->facts();
  ASSERT_EQ(facts.submodels.size(), 3u);
  EXPECT_EQ(facts.submodels[kSmall].name, "0.5m");
  EXPECT_EQ(facts.submodels[kSmall].total_parameters, 503952);
  EXPECT_TRUE(facts.supports_thinking);
  EXPECT_EQ(facts.close_tokens, 2);
  EXPECT_EQ(facts.max_context_tokens, 4096);
  EXPECT_EQ(engine_->thinking_markers()->close, "\n</think>");
  EXPECT_EQ(engine_->backend_name(), "cpu");
  EXPECT_TRUE(engine_->chat_status().ok()) << engine_->chat_status();
}

}  // namespace
}  // namespace nestor
