#include "server/unary_reactor.h"

#include <utility>

#include "server/raw_message.h"
#include "server/status_details.h"

namespace nestor {

void UnaryReactor::Attach(std::shared_ptr<GenerationCall> call) {
  call_ = std::move(call);
  calls_.Add(call_);
}

void UnaryReactor::OnStart(v1::GenerationStart start) { *response_.mutable_start() = std::move(start); }

void UnaryReactor::OnDelta(v1::GenerationDelta delta) {
  const bool thinks = delta.phase() == v1::PHASE_THINKING;
  (thinks ? response_.mutable_thinking_text() : response_.mutable_answer_text())->append(delta.text());
  auto* const tokens = thinks ? response_.mutable_thinking_tokens() : response_.mutable_answer_tokens();
  tokens->MergeFrom(delta.tokens());
}

void UnaryReactor::OnEnd(const absl::Status& status, v1::GenerationEnd end) {
  *response_.mutable_end() = std::move(end);
  if (status.ok()) bytes_ = WriteMessage(response_);
  Finish(ToGrpcStatus(status));
}

void UnaryReactor::OnDone() {
  calls_.Remove(call_);
  delete this;
}

}  // namespace nestor
