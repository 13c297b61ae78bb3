// A client of nestor.v1: deadlines, cancellation, retries, typed errors.
#ifndef NESTOR_CLIENT_CLIENT_H_
#define NESTOR_CLIENT_CLIENT_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "nestor/v1/generation_service.grpc.pb.h"
#include "nestor/v1/model_service.grpc.pb.h"

namespace nestor {

// What came with an error of the server besides code and message (google.rpc details).
struct ErrorDetails {
  std::string reason;                         // ErrorInfo: "BUDGET_TOO_SMALL"
  std::string field;                          // BadRequest: "generation.sampling.top_p", the first of
  std::vector<std::string> fields;            // all at fault
  std::optional<absl::Duration> retry_delay;  // RetryInfo
};

ErrorDetails DetailsOf(const absl::Status& status);

// One call in progress; Cancel from any thread, before, during or after it.
class CallControl {
 public:
  void Cancel();

 private:
  friend class Client;
  class Scope;  // a call in progress

  std::mutex mutex_;  // guards all below
  grpc::ClientContext* context_ = nullptr;
  bool cancelled_ = false;
};

struct CallOptions {
  absl::Duration timeout = absl::InfiniteDuration();  // becomes the gRPC deadline
  CallControl* control = nullptr;                     // lets the caller cancel; must outlive the call
};

// Thread-safe; calls run side by side.
class Client {
 public:
  // Plaintext. Connects on first use. Calls that end with UNAVAILABLE (not taken, or not finished by a server
  // that stops) are repeated up to four times within their deadline, streams only before their first message.
  static Client Connect(const std::string& address);

  explicit Client(std::shared_ptr<grpc::Channel> channel);

  absl::StatusOr<v1::GenerateResponse> Generate(const v1::Generation& generation,
                                                const CallOptions& options = {});

  // Hands every message to `on_message`, in order, on this thread.
  absl::Status GenerateStream(const v1::Generation& generation,
                              const std::function<void(const v1::GenerateStreamResponse&)>& on_message,
                              const CallOptions& options = {});

  absl::StatusOr<v1::ListModelsResponse> ListModels(const CallOptions& options = {});

 private:
  std::unique_ptr<v1::GenerationService::Stub> generation_;
  std::unique_ptr<v1::ModelService::Stub> models_;
};

}  // namespace nestor

#endif  // NESTOR_CLIENT_CLIENT_H_
