#include "server/generation_call.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/serve/prompt.h"
#include "server/request_conversion.h"
#include "server/request_log.h"
#include "server/response_conversion.h"
#include "server/status_details.h"
#include "server/violations.h"

namespace nestor {
namespace {

// Where the paths of fields begin in requests that hold a Generation.
constexpr std::string_view kGenerationField = "generation.";

PromptLimits LimitsOf(const Engine& engine) {
  size_t longest_token = 1;
  for (int32_t token = 0; token < engine.tokenizer().vocab_size(); ++token) {
    longest_token = std::max(longest_token, engine.tokenizer().TokenBytes(token).size());
  }
  return {engine.checkpoint().config().vocab_size, longest_token * engine.facts().max_context_tokens};
}

// What the engine says of "prompt" is about the field that holds it.
absl::Status WithPromptField(const absl::Status& status, const v1::Generation& generation) {
  return FieldOf(status) == "prompt" ? WithField(status, PromptField(generation)) : status;
}

}  // namespace

GenerationContext::GenerationContext(Engine& engine_to_use, std::string name)
    : engine(engine_to_use), model_name(std::move(name)), prompt_limits(LimitsOf(engine)) {}

GenerationCall::GenerationCall(const GenerationContext& context, absl::Time deadline, GenerationSink& sink)
    : context_(context), engine_(context.engine), deadline_(deadline), sink_(sink) {}

void GenerationCall::Run(const absl::StatusOr<v1::Generation>& generation) {
  if (!generation.ok()) return Refuse(generation.status());
  const absl::Status status = Accept(*generation);
  if (!status.ok()) return Refuse(WithFieldPrefix(WithPromptField(status, *generation), kGenerationField));
  Start();  // from here on, the outcome ends the call
}

void GenerationCall::Refuse(const absl::Status& status) {
  LogRefusal(request_id_, status);
  sink_.OnEnd(status, {});
}

absl::Status GenerationCall::Accept(const v1::Generation& generation) {
  request_id_ = generation.request_id();
  NESTOR_ASSIGN_OR_RETURN(GenerationRequest request, Prepare(generation));
  request_id_ = request.request_id;
  with_tokens_ = generation.return_token_ids() || generation.has_top_logprobs();
  thinks_ = request.plan.think;
  {
    std::lock_guard lock(start_mutex_);
    start_ = ToProto(request, context_.model_name, engine_.facts());
  }
  return Submit(std::move(request));
}

absl::StatusOr<GenerationRequest> GenerationCall::Prepare(const v1::Generation& generation) const {
  if (!generation.model().empty() && generation.model() != context_.model_name) {
    return WithField(absl::NotFoundError(StrCat("model: expected '", context_.model_name, "', found '",
                                                Excerpt(generation.model()), "'")),
                     "model");
  }
  if (generation.has_chat() && !engine_.chat_status().ok()) {
    const absl::Status status = absl::UnimplementedError(
        "chat: the model's chat template is not supported yet, send text or token_ids in its place");
    return WithReason(WithField(status, "chat"), "CHAT_TEMPLATE_UNSUPPORTED");
  }
  NESTOR_ASSIGN_OR_RETURN(RequestParts parts,
                          ReadRequest(generation, engine_.checkpoint().config(), context_.prompt_limits));
  NESTOR_ASSIGN_OR_RETURN(Prompt prompt, BuildPrompt(parts.prompt, parts.thinking_enabled,
                                                     engine_.thinking_markers(), engine_.tokenizer()));
  parts.plan.think = prompt.think;
  parts.plan.prompt_tokens = static_cast<int>(prompt.tokens.size());
  NESTOR_ASSIGN_OR_RETURN(parts.request.plan, Route(parts.plan, engine_.facts()));
  parts.request.prompt_tokens = std::move(prompt.tokens);
  parts.request.deadline = deadline_;
  return std::move(parts.request);
}

absl::Status GenerationCall::Submit(GenerationRequest request) {
  // Under the lock, so that a Cancel either sees the handle or is seen here.
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  NESTOR_ASSIGN_OR_RETURN(handle_, engine_.Submit(std::move(request), shared_from_this()));
  return absl::OkStatus();
}

void GenerationCall::Start() {
  std::lock_guard lock(start_mutex_);
  if (start_) sink_.OnStart(*std::exchange(start_, std::nullopt));
}

void GenerationCall::Abandon() {
  End(absl::UnavailableError("the server stops, and its time to finish open requests is over"));
}

void GenerationCall::End(absl::Status status) {
  std::lock_guard lock(mutex_);
  if (ended_.ok()) ended_ = std::move(status);
  if (handle_) engine_.Cancel(*handle_);
}

absl::Status GenerationCall::Explain(const absl::Status& status) {
  if (!absl::IsCancelled(status)) return status;
  // A client that sees its deadline pass cancels, and its clock starts a little earlier: gRPC rounds what it
  // tells the server up by at most 1 %.
  const absl::Duration slack = absl::Milliseconds(20) + (deadline_ - arrival_) / 100;
  if (absl::Now() >= deadline_ - slack) return absl::DeadlineExceededError("the request's deadline passed");
  std::lock_guard lock(mutex_);
  return ended_.ok() ? status : ended_;
}

void GenerationCall::OnDelta(Delta delta) {
  if (delta.text.empty() && !with_tokens_) return;
  Start();
  sink_.OnDelta(ToProto(delta, with_tokens_));
}

void GenerationCall::OnOutcome(Outcome outcome) {
  Start();
  outcome.status = Explain(outcome.status);
  LogOutcome(request_id_, outcome);
  v1::GenerationEnd end;
  if (outcome.status.ok()) end = ToProto(outcome, thinks_, engine_.facts());
  sink_.OnEnd(outcome.status, std::move(end));
}

}  // namespace nestor
