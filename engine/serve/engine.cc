#include "engine/serve/engine.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "engine/backend/cpu/cpu_executor.h"
#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "engine/checkpoint/footprint.h"
#include "engine/model/model.h"
#include "engine/serve/model_facts.h"
#include "engine/serve/scheduler.h"
#include "engine/serve/sequence.h"
#include "engine/serve/step_loop.h"
#include "engine/text/chat_template.h"

namespace nestor {
namespace {

// How the cache budget is divided.
struct CacheSize {
  int pages = 0;
  int64_t bytes = 0;
};

// One slot for each sequence, the rest in pages, but no more than all sequences could fill.
absl::StatusOr<CacheSize> DivideCache(const Checkpoint& checkpoint, const EngineOptions& options) {
  const Footprint full = FootprintOf(checkpoint, checkpoint.config().full);
  const int64_t slot_bytes = options.sequences_max * full.state_bytes;
  const int64_t page_bytes = full.kv_bytes_per_token * kPageTokens;
  const int64_t pages_useful =
      int64_t{options.sequences_max} * PagesFor(checkpoint.config().max_position_embeddings);
  const int64_t pages_affordable =
      page_bytes == 0 ? pages_useful : (options.cache_bytes - slot_bytes) / page_bytes;
  const int64_t pages = std::min({pages_useful, pages_affordable, int64_t{std::numeric_limits<int>::max()}});
  if (slot_bytes > options.cache_bytes || pages < 1) {
    return InvalidField("cache_bytes", StrCat("expected at least ", slot_bytes + page_bytes, " for ",
                                              options.sequences_max, " sequences and one page of ",
                                              kPageTokens, " tokens, found ", options.cache_bytes));
  }
  return CacheSize{static_cast<int>(pages), slot_bytes + pages * page_bytes};
}

}  // namespace

absl::Status CheckOptions(const EngineOptions& options) {
  const auto check = [](std::string_view name, int64_t value, int64_t least, int64_t most) {
    return value >= least && value <= most
               ? absl::OkStatus()
               : InvalidField(name, StrCat("expected ", least, " to ", most, ", found ", value));
  };
  NESTOR_RETURN_IF_ERROR(check("sequences_max", options.sequences_max, 1, 4096));
  NESTOR_RETURN_IF_ERROR(check("cache_bytes", options.cache_bytes, 1, int64_t{1} << 48));
  NESTOR_RETURN_IF_ERROR(check("rows_max", options.rows_max, kPrefillGrid, 16384));
  NESTOR_RETURN_IF_ERROR(check("queue_max", options.queue_max, 1, 1 << 20));
  return check("default_max_output_tokens", options.default_max_output_tokens, 1, 1 << 28);
}

// Members before `loop_` are immutable after Load; `loop_` belongs to the thread that runs RunOnce.
class Engine::Impl {
 public:
  Impl(Checkpoint checkpoint, Tokenizer tokenizer, const EngineOptions& options, CacheSize cache)
      : options_(options),
        checkpoint_(std::move(checkpoint)),
        tokenizer_(std::move(tokenizer)),
        model_(BindModel(checkpoint_)),
        cache_(cache),
        executor_(CreateCpuExecutor(
            model_, {options.sequences_max, cache.pages, options.rows_max, options.sequences_max})),
        loop_(*executor_, options.sequences_max, cache.pages, options.rows_max, options.clock) {
    load_.slots_free = load_.slots_total = options.sequences_max;
    load_.pages_free = load_.pages_total = cache.pages;
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    inbox_.notify_one();
    if (thread_.joinable()) thread_.join();
    TakeInbox();
    loop_.EndAll(absl::UnavailableError("the engine is stopping"));
  }

  // Finds thinking markers and fills in what the router has to know.
  absl::Status Describe() {
    const ModelConfig& config = checkpoint_.config();
    if (tokenizer_.vocab_size() > config.vocab_size) {
      return absl::InvalidArgumentError(StrCat(checkpoint_.directory(), "/tokenizer.json: expected at most ",
                                               config.vocab_size, " tokens, the model's vocabulary, found ",
                                               tokenizer_.vocab_size()));
    }
    facts_ = DescribeModel(checkpoint_);
    facts_.max_context_tokens = static_cast<int>(
        std::min<int64_t>(config.max_position_embeddings, int64_t{cache_.pages} * kPageTokens));
    facts_.default_max_output_tokens = options_.default_max_output_tokens;
    context_.tokenizer = &tokenizer_;
    context_.eos_tokens = config.eos_token_ids;
    markers_ = FindThinkingMarkers(checkpoint_, tokenizer_);
    facts_.supports_thinking = markers_.has_value();
    if (markers_) {
      NESTOR_ASSIGN_OR_RETURN(context_.close_tokens, CloseTokens(*markers_, tokenizer_));
      facts_.close_tokens = static_cast<int>(context_.close_tokens.size());
    }
    const int least = facts_.close_tokens + 2;  // one of a prompt, one of an answer
    if (facts_.max_context_tokens < least) {
      return absl::InvalidArgumentError(StrCat(
          checkpoint_.directory(), ": expected a context of at least ", least, " tokens, found ",
          config.max_position_embeddings, " positions and ", cache_.pages * kPageTokens, " in the cache"));
    }
    chat_status_ = CheckChatTemplate(checkpoint_.directory());
    return absl::IsUnimplemented(chat_status_) ? absl::OkStatus() : chat_status_;
  }

  void Start() {
    thread_ = std::thread([this] {
      while (WaitForWork()) RunOnce();
    });
  }

  bool RunOnce() {
    TakeInbox();
    const bool worked = loop_.RunOnce();
    PublishLoad();
    return worked;
  }

  absl::StatusOr<RequestHandle> Submit(GenerationRequest request,
                                       std::shared_ptr<GenerationListener> listener) {
    NESTOR_RETURN_IF_ERROR(Check(request));
    std::lock_guard lock(mutex_);
    if (!admitting_) return absl::UnavailableError("the server is draining and takes no new requests");
    const int queued = loop_queued_ + static_cast<int>(submitted_.size());
    if (queued >= options_.queue_max) {
      constexpr int kRetryDelayMs = 1000;
      return WithRetryDelayMs(
          WithReason(absl::ResourceExhaustedError(StrCat("the queue is full: ", queued, " requests wait")),
                     "QUEUE_FULL"),
          kRetryDelayMs);
    }
    const RequestHandle handle = ++last_handle_;
    submitted_.push_back(std::make_unique<Sequence>(std::move(request), std::move(listener), context_, handle,
                                                    options_.clock()));
    inbox_.notify_one();
    return handle;
  }

  void Cancel(RequestHandle handle) {
    std::lock_guard lock(mutex_);
    cancelled_.push_back(handle);
    inbox_.notify_one();
  }

  void StopAdmission() {
    std::lock_guard lock(mutex_);
    admitting_ = false;
  }

  EngineLoad load() const {
    std::lock_guard lock(mutex_);
    EngineLoad load = load_;
    load.queued += static_cast<int>(submitted_.size());
    return load;
  }

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ModelFacts& facts() const { return facts_; }
  const std::optional<ThinkingMarkers>& thinking_markers() const { return markers_; }
  const absl::Status& chat_status() const { return chat_status_; }
  const Executor& executor() const { return *executor_; }
  int64_t cache_bytes() const { return cache_.bytes; }

 private:
  absl::Status Check(const GenerationRequest& request) const {
    if (request.prompt_tokens.empty())
      return InvalidField("prompt", "expected at least one token, found none");
    for (const int32_t token : request.prompt_tokens) {
      if (token < 0 || token >= checkpoint_.config().vocab_size) {
        return InvalidField("prompt", StrCat("expected token ids from 0 to ",
                                             checkpoint_.config().vocab_size - 1, ", found ", token));
      }
    }
    const Plan& plan = request.plan;
    const int64_t tokens = static_cast<int64_t>(request.prompt_tokens.size()) + plan.max_output_tokens +
                           (plan.think ? facts_.close_tokens : 0);
    if (plan.max_output_tokens < 1 || tokens > facts_.max_context_tokens) {
      return InvalidField("max_output_tokens",
                          StrCat("expected 1 or more, and at most ", facts_.max_context_tokens,
                                 " tokens with the prompt, found ", plan.max_output_tokens));
    }
    return absl::OkStatus();
  }

  // False: the engine stops.
  bool WaitForWork() {
    std::unique_lock lock(mutex_);
    inbox_.wait(lock, [this] { return stopping_ || busy_ || !submitted_.empty() || !cancelled_.empty(); });
    return !stopping_;
  }

  void TakeInbox() {
    std::vector<std::unique_ptr<Sequence>> submitted;
    std::vector<RequestHandle> cancelled;
    {
      std::lock_guard lock(mutex_);
      submitted.swap(submitted_);
      cancelled.swap(cancelled_);
      loop_queued_ += static_cast<int>(submitted.size());
    }
    for (std::unique_ptr<Sequence>& sequence : submitted) loop_.Add(std::move(sequence));
    for (const RequestHandle handle : cancelled)
      loop_.End(handle, absl::CancelledError("the request was cancelled"));
  }

  void PublishLoad() {
    std::lock_guard lock(mutex_);
    loop_queued_ = loop_.queued();
    busy_ = loop_.queued() + loop_.running() > 0;
    load_.queued = loop_.queued();
    load_.running = loop_.running();
    load_.slots_free = loop_.slots_free();
    load_.pages_free = loop_.pages_free();
    load_.steps = loop_.steps();
  }

  const EngineOptions options_;
  const Checkpoint checkpoint_;
  const Tokenizer tokenizer_;
  const Model model_;
  const CacheSize cache_;
  const std::unique_ptr<Executor> executor_;
  ModelFacts facts_;
  std::optional<ThinkingMarkers> markers_;
  absl::Status chat_status_;
  SequenceContext context_;
  StepLoop loop_;

  mutable std::mutex mutex_;  // guards all below but the thread
  std::condition_variable inbox_;
  std::vector<std::unique_ptr<Sequence>> submitted_;
  std::vector<RequestHandle> cancelled_;
  EngineLoad load_;
  RequestHandle last_handle_ = 0;
  int loop_queued_ = 0;  // waiting inside the loop
  bool busy_ = false;    // the loop has sequences
  bool admitting_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<Engine>> Engine::Load(const std::string& directory,
                                                     const EngineOptions& options) {
  NESTOR_RETURN_IF_ERROR(CheckOptions(options));
  NESTOR_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(directory));
  NESTOR_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(directory + "/tokenizer.json"));
  NESTOR_ASSIGN_OR_RETURN(const CacheSize cache, DivideCache(checkpoint, options));
  try {
    auto impl = std::make_unique<Impl>(std::move(checkpoint), std::move(tokenizer), options, cache);
    NESTOR_RETURN_IF_ERROR(impl->Describe());
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(StrCat(directory, ": not enough memory for a cache of ", cache.bytes,
                                               " bytes (cache_bytes ", options.cache_bytes, "), ",
                                               options.sequences_max, " sequences (sequences_max) and ",
                                               options.rows_max, " rows (rows_max)"));
  }
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

void Engine::Start() { impl_->Start(); }
bool Engine::RunOnce() { return impl_->RunOnce(); }
absl::StatusOr<RequestHandle> Engine::Submit(GenerationRequest request,
                                             std::shared_ptr<GenerationListener> listener) {
  return impl_->Submit(std::move(request), std::move(listener));
}
void Engine::Cancel(RequestHandle handle) { impl_->Cancel(handle); }
void Engine::StopAdmission() { impl_->StopAdmission(); }
EngineLoad Engine::load() const { return impl_->load(); }
const Checkpoint& Engine::checkpoint() const { return impl_->checkpoint(); }
const Tokenizer& Engine::tokenizer() const { return impl_->tokenizer(); }
const ModelFacts& Engine::facts() const { return impl_->facts(); }
const std::optional<ThinkingMarkers>& Engine::thinking_markers() const { return impl_->thinking_markers(); }
const absl::Status& Engine::chat_status() const { return impl_->chat_status(); }
std::string_view Engine::backend_name() const { return impl_->executor().backend_name(); }
int64_t Engine::cache_bytes() const { return impl_->cache_bytes(); }

}  // namespace nestor
