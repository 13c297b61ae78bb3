#include "server/response_conversion.h"

#include "absl/time/time.h"

namespace nestor {
namespace {

v1::Handoff ToProto(Handoff handoff) {
  return handoff == Handoff::kTransplant ? v1::HANDOFF_TRANSPLANT : v1::HANDOFF_RECOMPUTE;
}

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kStopString:
      return v1::FINISH_REASON_STOP_STRING;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

void Set(absl::Duration duration, google::protobuf::Duration* proto) {
  const int64_t nanos = absl::ToInt64Nanoseconds(duration);
  proto->set_seconds(nanos / 1'000'000'000);
  proto->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

v1::Plan ToProto(const Plan& plan, const ModelFacts& facts) {
  v1::Plan proto;
  if (plan.think) proto.set_thinking_submodel(facts.submodels[plan.thinking_submodel].name);
  proto.set_answer_submodel(facts.submodels[plan.answer_submodel].name);
  proto.set_handoff(ToProto(plan.handoff));
  if (plan.max_thinking_tokens) proto.set_max_thinking_tokens(*plan.max_thinking_tokens);
  proto.set_max_output_tokens(plan.max_output_tokens);
  proto.set_memory_bytes(plan.memory_bytes);
  proto.set_budget_missed(plan.budget_missed);
  proto.set_reason(plan.reason);
  return proto;
}

void Set(const PhaseUsage& usage, const ModelFacts& facts, v1::PhaseUsage* proto) {
  proto->set_submodel(facts.submodels[usage.submodel].name);
  proto->set_generated_tokens(usage.generated_tokens);
  proto->set_computed_tokens(usage.computed_tokens);
}

void AddToSubmodel(const v1::PhaseUsage& phase, v1::Usage& usage) {
  v1::SubmodelUsage* submodel = nullptr;
  for (v1::SubmodelUsage& known : *usage.mutable_submodels()) {
    if (known.submodel() == phase.submodel()) submodel = &known;
  }
  if (submodel == nullptr) submodel = usage.add_submodels();
  submodel->set_submodel(phase.submodel());
  submodel->set_generated_tokens(submodel->generated_tokens() + phase.generated_tokens());
  submodel->set_computed_tokens(submodel->computed_tokens() + phase.computed_tokens());
}

v1::Usage ToProto(const Usage& usage, bool thinks, const ModelFacts& facts) {
  v1::Usage proto;
  proto.set_prompt_tokens(usage.prompt_tokens);
  proto.set_forced_tokens(usage.forced_tokens);
  if (thinks) {
    Set(usage.thinking, facts, proto.mutable_thinking());
    AddToSubmodel(proto.thinking(), proto);
  }
  Set(usage.answer, facts, proto.mutable_answer());
  AddToSubmodel(proto.answer(), proto);
  proto.set_preemptions(usage.preemptions);
  return proto;
}

v1::Timings ToProto(const Timings& timings, int generated_tokens) {
  v1::Timings proto;
  Set(timings.queue, proto.mutable_queue());
  Set(timings.total, proto.mutable_total());
  if (timings.first_token) {
    Set(*timings.first_token, proto.mutable_time_to_first_token());
    if (generated_tokens > 1) {
      Set((timings.total - *timings.first_token) / (generated_tokens - 1),
          proto.mutable_time_per_output_token());
    }
  }
  if (timings.first_answer_token)
    Set(*timings.first_answer_token, proto.mutable_time_to_first_answer_token());
  return proto;
}

v1::Quality ToProto(const QualityRow& row) {
  v1::Quality proto;
  if (row.thinking_submodel) proto.set_thinking_submodel(*row.thinking_submodel);
  proto.set_answer_submodel(row.answer_submodel);
  if (row.max_thinking_tokens) proto.set_max_thinking_tokens(*row.max_thinking_tokens);
  proto.set_handoff(ToProto(row.handoff));
  proto.set_accuracy(row.accuracy);
  proto.set_mean_thinking_tokens(row.mean_thinking_tokens);
  for (const auto& [task, accuracy] : row.accuracy_by_task)
    (*proto.mutable_accuracy_by_task())[task] = accuracy;
  return proto;
}

}  // namespace

v1::GenerationStart ToProto(const GenerationRequest& request, const std::string& model_name,
                            const ModelFacts& facts) {
  v1::GenerationStart proto;
  proto.set_request_id(request.request_id);
  proto.set_model(model_name);
  *proto.mutable_plan() = ToProto(request.plan, facts);
  proto.set_seed(request.sampling.seed);
  proto.set_prompt_tokens(static_cast<int32_t>(request.prompt_tokens.size()));
  return proto;
}

v1::GenerationDelta ToProto(const Delta& delta, bool with_tokens) {
  v1::GenerationDelta proto;
  proto.set_phase(delta.phase == Phase::kThinking ? v1::PHASE_THINKING : v1::PHASE_ANSWER);
  proto.set_text(delta.text);
  if (!with_tokens) return proto;
  for (const GeneratedToken& token : delta.tokens) {
    v1::GeneratedToken* const added = proto.add_tokens();
    added->set_id(token.token);
    if (token.logprob) added->set_logprob(*token.logprob);
    for (const TokenLogprob& other : token.top_logprobs) {
      v1::TokenLogprob* const logprob = added->add_top_logprobs();
      logprob->set_id(other.token);
      logprob->set_logprob(other.logprob);
    }
  }
  return proto;
}

v1::GenerationEnd ToProto(const Outcome& outcome, bool thinks, const ModelFacts& facts) {
  v1::GenerationEnd proto;
  proto.set_finish_reason(ToProto(outcome.finish_reason));
  proto.set_stop_string(outcome.stop_string);
  proto.set_thinking_truncated(outcome.thinking_truncated);
  *proto.mutable_usage() = ToProto(outcome.usage, thinks, facts);
  *proto.mutable_timings() = ToProto(
      outcome.timings, outcome.usage.thinking.generated_tokens + outcome.usage.answer.generated_tokens);
  return proto;
}

v1::Model DescribeModel(const Engine& engine, const std::string& model_name) {
  const ModelFacts& facts = engine.facts();
  const ElasticDescriptor& elastic = engine.checkpoint().elastic();
  v1::Model proto;
  proto.set_name(model_name);
  for (const SubmodelFacts& submodel : facts.submodels) {
    v1::Submodel* const added = proto.add_submodels();
    added->set_name(submodel.name);
    added->set_total_parameters(submodel.total_parameters);
    added->set_active_parameters(submodel.active_parameters);
    added->set_weight_bytes(submodel.weight_bytes);
    added->set_state_bytes_per_sequence(submodel.state_bytes);
    added->set_kv_bytes_per_token(submodel.kv_bytes_per_token);
  }
  proto.set_max_context_tokens(facts.max_context_tokens);
  proto.set_supports_thinking(facts.supports_thinking);
  proto.set_supports_chat(engine.chat_status().ok());
  proto.set_default_handoff(ToProto(facts.default_handoff));
  proto.set_transplant_allowed(elastic.transplant_allowed);
  proto.set_quality_metric(elastic.quality_metric);
  for (const QualityRow& row : elastic.quality) *proto.add_quality() = ToProto(row);
  proto.set_backend(std::string(engine.backend_name()));
  return proto;
}

}  // namespace nestor
