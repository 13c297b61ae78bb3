#include "server/generation_call.h"

#include <utility>

#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/serve/prompt.h"
#include "server/request_conversion.h"
#include "server/response_conversion.h"

namespace nestor {

GenerationCall::GenerationCall(Engine& engine, const std::string& model_name,
                               const v1::Generation& generation, absl::Time deadline, GenerationSink& sink)
    : engine_(engine),
      model_name_(model_name),
      generation_(generation),
      deadline_(deadline),
      sink_(sink),
      with_tokens_(generation.return_token_ids() || generation.has_top_logprobs()) {}

void GenerationCall::Run() {
  absl::StatusOr<GenerationRequest> request = Prepare();
  absl::Status status = request.status();
  if (status.ok()) {
    thinks_ = request->plan.think;
    sink_.OnStart(ToProto(*request, model_name_, engine_.facts()));
    status = Submit(*std::move(request));
  }
  // Once submitted, the outcome ends the call.
  if (!status.ok()) sink_.OnEnd(status, {});
}

absl::StatusOr<GenerationRequest> GenerationCall::Prepare() const {
  if (!generation_.model().empty() && generation_.model() != model_name_) {
    return WithField(
        absl::NotFoundError(StrCat("model: expected '", model_name_, "', found '", generation_.model(), "'")),
        "model");
  }
  NESTOR_ASSIGN_OR_RETURN(const PromptSource source, ReadPrompt(generation_));
  NESTOR_ASSIGN_OR_RETURN(PlanRequest plan_request, ReadPlanRequest(generation_));
  NESTOR_ASSIGN_OR_RETURN(GenerationRequest request,
                          ReadGenerationRequest(generation_, engine_.checkpoint().config()));
  NESTOR_ASSIGN_OR_RETURN(Prompt prompt, BuildPrompt(source, ReadThinkingEnabled(generation_),
                                                     engine_.thinking_markers(), engine_.tokenizer()));
  plan_request.think = prompt.think;
  plan_request.prompt_tokens = static_cast<int>(prompt.tokens.size());
  NESTOR_ASSIGN_OR_RETURN(request.plan, Route(plan_request, engine_.facts()));
  request.prompt_tokens = std::move(prompt.tokens);
  request.deadline = deadline_;
  return request;
}

absl::Status GenerationCall::Submit(GenerationRequest request) {
  // Under the lock, so that a Cancel either sees the handle or is seen here.
  absl::MutexLock lock(&mutex_);
  if (cancelled_) return absl::CancelledError("the request was cancelled");
  NESTOR_ASSIGN_OR_RETURN(handle_, engine_.Submit(std::move(request), shared_from_this()));
  return absl::OkStatus();
}

void GenerationCall::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (handle_) engine_.Cancel(*handle_);
}

void GenerationCall::OnDelta(Delta delta) {
  if (delta.text.empty() && !with_tokens_) return;
  sink_.OnDelta(ToProto(delta, with_tokens_));
}

void GenerationCall::OnOutcome(Outcome outcome) {
  v1::GenerationEnd end;
  if (outcome.status.ok()) end = ToProto(outcome, thinks_, engine_.facts());
  sink_.OnEnd(outcome.status, std::move(end));
}

}  // namespace nestor
