#include "server/request_conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/base/error_detail.h"
#include "server/status_details.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RequestConversionTest : public ::testing::Test {
 protected:
  RequestConversionTest() {
    config_.vocab_size = 100;
    generation_.set_text("1+1=?");
  }

  absl::StatusOr<RequestParts> Read() const { return ReadRequest(generation_, config_, {100, 1000}); }

  // All the messages of a refusal.
  std::string Refusal() const {
    const absl::Status status = Read().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  v1::ChatMessage& AddMessage(v1::ChatRole role, const std::string& content) {
    v1::ChatMessage& message = *generation_.mutable_chat()->add_messages();
    message.set_role(role);
    message.set_content(content);
    return message;
  }

  ModelConfig config_;
  v1::Generation generation_;
};

TEST_F(RequestConversionTest, AbsentFieldsAreDefaults) {
  const auto parts = Read();
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(std::get<std::string>(parts->prompt), "1+1=?");
  EXPECT_FALSE(parts->thinking_enabled.has_value());
  EXPECT_FALSE(parts->plan.max_output_tokens.has_value());
  EXPECT_FALSE(parts->plan.handoff.has_value());
  EXPECT_FALSE(parts->plan.best_effort);
  EXPECT_EQ(parts->request.sampling.temperature, 0);  // greedy
  EXPECT_EQ(parts->request.top_logprobs, -1);
  EXPECT_THAT(parts->request.request_id, StartsWith("req-"));
  EXPECT_NE(Read()->request.request_id, parts->request.request_id);
  EXPECT_NE(Read()->request.sampling.seed, parts->request.sampling.seed);
}

TEST_F(RequestConversionTest, TheModelsOwnSamplingIsTheDefault) {
  config_.do_sample = true;
  config_.temperature = 0.7f;
  config_.top_p = 0.9f;
  generation_.mutable_sampling()->set_top_p(0.5f);
  const SamplingParameters sampling = Read()->request.sampling;
  EXPECT_EQ(sampling.temperature, 0.7f);
  EXPECT_EQ(sampling.top_p, 0.5f);
  generation_.mutable_sampling()->set_temperature(0);  // absent is not zero
  EXPECT_EQ(Read()->request.sampling.temperature, 0);
}

TEST_F(RequestConversionTest, EveryFieldArrives) {
  generation_.mutable_thinking()->set_enabled(true);
  generation_.mutable_thinking()->set_max_thinking_tokens(0);
  generation_.mutable_thinking()->set_submodel("small");
  generation_.mutable_answer()->mutable_budget()->set_max_memory_bytes(5);
  generation_.mutable_budget()->set_max_active_parameters(6);
  generation_.set_handoff(v1::HANDOFF_TRANSPLANT);
  generation_.set_budget_policy(v1::BUDGET_POLICY_BEST_EFFORT);
  generation_.mutable_sampling()->set_seed(0);
  generation_.set_max_output_tokens(7);
  generation_.add_stop_strings("stop");
  generation_.set_ignore_eos(true);
  generation_.set_priority(-3);
  generation_.set_request_id("mine");
  const auto parts = Read();
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->thinking_enabled, true);
  EXPECT_EQ(parts->plan.max_thinking_tokens, 0);
  EXPECT_EQ(parts->plan.thinking.submodel, "small");
  EXPECT_FALSE(parts->plan.answer.submodel.has_value());
  EXPECT_EQ(parts->plan.answer.budget.max_memory_bytes, 5);
  EXPECT_EQ(parts->plan.budget.max_active_parameters, 6);
  EXPECT_EQ(parts->plan.handoff, Handoff::kTransplant);
  EXPECT_TRUE(parts->plan.best_effort);
  EXPECT_EQ(parts->plan.max_output_tokens, 7);
  EXPECT_EQ(parts->request.sampling.seed, 0u);
  EXPECT_THAT(parts->request.stop_strings, ElementsAre("stop"));
  EXPECT_TRUE(parts->request.ignore_eos);
  EXPECT_EQ(parts->request.priority, -3);
  EXPECT_EQ(parts->request.request_id, "mine");
}

TEST_F(RequestConversionTest, OneAnswerNamesEverythingThatIsWrong) {
  generation_.set_text("");
  generation_.mutable_budget()->set_max_total_parameters(0);
  generation_.mutable_sampling()->set_top_p(7);
  generation_.add_stop_strings("");
  EXPECT_EQ(
      Refusal(),
      "text: expected text, found nothing; budget.max_total_parameters: expected 1 or more, found 0; "
      "sampling.top_p: expected above 0 to 1, found 7; stop_strings[0]: expected 1 to 256 bytes, found 0");
}

TEST_F(RequestConversionTest, NumbersOutOfRangeAreRepeatedAsTheyAre) {
  generation_.mutable_thinking()->set_max_thinking_tokens(std::numeric_limits<int>::min());
  generation_.mutable_sampling()->set_repetition_penalty(
      0.001f);  // its inverse would carry logits out of range
  EXPECT_EQ(Refusal(),
            "thinking.max_thinking_tokens: expected 0 or more, found -2147483648; "
            "sampling.repetition_penalty: expected 0.01 to 100, found 0.001");
}

TEST_F(RequestConversionTest, LatencyBudgetsAreRefusedWhereverTheyAre) {
  for (v1::Budget* const budget :
       {generation_.mutable_budget(), generation_.mutable_thinking()->mutable_budget(),
        generation_.mutable_answer()->mutable_budget()}) {
    budget->mutable_latency();  // also an empty one
    const absl::Status status = Read().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(ReasonOf(status), "LATENCY_BUDGET_UNSUPPORTED");
    EXPECT_THAT(*FieldOf(status), HasSubstr("budget.latency"));
    budget->Clear();
  }
  EXPECT_TRUE(Read().ok());
}

TEST_F(RequestConversionTest, TokensAreCheckedAgainstTheVocabulary) {
  generation_.mutable_token_ids()->add_ids(99);
  EXPECT_TRUE(Read().ok());
  generation_.mutable_token_ids()->add_ids(100);
  generation_.mutable_token_ids()->add_ids(101);
  EXPECT_EQ(Refusal(), "token_ids.ids[1]: expected a token id from 0 to 99, found 100");
}

TEST_F(RequestConversionTest, TextThatNoContextHoldsIsNotEvenTokenized) {
  generation_.set_text(std::string(1000, 'x'));
  EXPECT_TRUE(Read().ok());
  generation_.set_text(std::string(1001, 'x'));
  EXPECT_THAT(Refusal(), HasSubstr("text: expected at most 1000 bytes"));
  AddMessage(v1::CHAT_ROLE_USER, std::string(1001, 'x'));
  EXPECT_THAT(Refusal(), HasSubstr("chat.messages[0].content: expected at most 1000 bytes"));
  generation_.mutable_chat()->mutable_messages(0)->set_role(v1::CHAT_ROLE_ASSISTANT);
  EXPECT_TRUE(Read().ok());  // its thinking may be left out
}

TEST_F(RequestConversionTest, ToolsKeepTheOrderOfTheirKeys) {
  AddMessage(v1::CHAT_ROLE_USER, "x");
  v1::ChatMessage& assistant = AddMessage(v1::CHAT_ROLE_ASSISTANT, "");
  v1::ToolCall& call = *assistant.add_tool_calls();
  call.set_name("f");
  call.set_arguments_json(R"({"z": 1, "a": 2})");
  generation_.mutable_chat()->add_tools_json(R"({"name": "f", "description": "d"})");
  const auto parts = Read();
  ASSERT_TRUE(parts.ok()) << parts.status();
  const ChatPrompt& chat = std::get<ChatPrompt>(parts->prompt);
  EXPECT_EQ(chat.messages[1].tool_calls[0].arguments.dump(), R"({"z":1,"a":2})");
  EXPECT_EQ(chat.tools[0].dump(), R"({"name":"f","description":"d"})");
  EXPECT_TRUE(chat.truncate_history_thinking);
}

TEST_F(RequestConversionTest, JsonThatIsNoneOrTooDeepIsNamed) {
  AddMessage(v1::CHAT_ROLE_USER, "x");
  std::string& tool = *generation_.mutable_chat()->add_tools_json();
  tool = "[1]";
  EXPECT_EQ(Refusal(), "chat.tools_json[0]: expected a JSON object, found '[1]'");
  tool = R"({"a":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_THAT(Refusal(), HasSubstr("chat.tools_json[0]: expected at most 100 levels"));
  tool = std::string(59, 'x') + "é";  // an excerpt ends before the character it would cut
  EXPECT_EQ(Refusal(), "chat.tools_json[0]: expected a JSON object, found '" + std::string(59, 'x') + "…'");
}

TEST_F(RequestConversionTest, ListsAndNamesAreBounded) {
  for (int token = 0; token <= 1024; ++token) {
    (*generation_.mutable_sampling()->mutable_logit_bias())[token] = 1;
  }
  generation_.mutable_thinking()->set_submodel(std::string(129, 'x'));
  generation_.mutable_answer()->set_submodel(std::string(1 << 20, 'x'));
  EXPECT_EQ(Refusal(),
            "thinking.submodel: expected at most 128 bytes, found 129; answer.submodel: expected at most 128 "
            "bytes, found 1048576; sampling.logit_bias: expected at most 1024 tokens, found 1025");
}

}  // namespace
}  // namespace nestor
