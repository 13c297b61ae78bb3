#include "server/stream_reactor.h"

#include <utility>

#include "server/raw_message.h"
#include "server/status_details.h"

namespace nestor {
namespace {

// Appends to the last pending delta. False where there is none of the same phase with room for more: clients
// take 4 MiB a message by default, and a token with its 20 likeliest takes some 300 bytes.
bool Join(std::deque<v1::GenerateStreamResponse>& pending, const v1::GenerationDelta& delta) {
  constexpr size_t kTextBytesMax = 1 << 20;
  constexpr int kTokensMax = 4096;
  if (pending.empty() || !pending.back().has_delta()) return false;
  v1::GenerationDelta& last = *pending.back().mutable_delta();
  if (last.phase() != delta.phase()) return false;
  if (last.text().size() > kTextBytesMax || last.tokens_size() > kTokensMax) return false;
  last.mutable_text()->append(delta.text());
  last.mutable_tokens()->MergeFrom(delta.tokens());
  return true;
}

}  // namespace

void StreamReactor::Attach(std::shared_ptr<GenerationCall> call) {
  call_ = std::move(call);
  calls_.Add(call_);
}

void StreamReactor::OnStart(v1::GenerationStart start) {
  {
    std::lock_guard lock(mutex_);
    *pending_.emplace_back().mutable_start() = std::move(start);
  }
  Proceed();
}

void StreamReactor::OnDelta(v1::GenerationDelta delta) {
  {
    std::lock_guard lock(mutex_);
    if (!Join(pending_, delta)) *pending_.emplace_back().mutable_delta() = std::move(delta);
  }
  Proceed();
}

void StreamReactor::OnEnd(const absl::Status& status, v1::GenerationEnd end) {
  {
    std::lock_guard lock(mutex_);
    if (status.ok()) *pending_.emplace_back().mutable_end() = std::move(end);
    final_status_ = ToGrpcStatus(status);
  }
  Proceed();
}

void StreamReactor::OnWriteDone(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    broken_ = broken_ || !ok;
  }
  if (!ok) call_->Cancel();
  Proceed();
}

void StreamReactor::Proceed() {
  std::optional<grpc::Status> finish;
  {
    std::lock_guard lock(mutex_);
    if (writing_) return;
    if (broken_) pending_.clear();
    if (!pending_.empty()) {
      writing_ = true;
      current_ = WriteMessage(pending_.front());
      pending_.pop_front();
    } else if (final_status_) {
      writing_ = true;  // nothing may follow
      finish = std::exchange(final_status_, std::nullopt);
    } else {
      return;
    }
  }
  // Outside the lock: gRPC may react at once, on another thread, and the last reaction deletes this.
  finish ? Finish(*finish) : StartWrite(&current_);
}

void StreamReactor::OnDone() {
  calls_.Remove(call_);
  delete this;
}

}  // namespace nestor
