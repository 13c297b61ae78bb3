// The gRPC server: services, health, reflection, limits, drain.
#ifndef NESTOR_SERVER_SERVER_H_
#define NESTOR_SERVER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/serve/engine.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "server/call_registry.h"
#include "server/generation_service.h"
#include "server/model_service.h"
#include "server/worker_pool.h"

namespace nestor {

struct ServerOptions {
  std::string address = "127.0.0.1:50051";  // port 0: any free one; empty: in-process channels only
  std::string model_name = "model";
  bool reflection = true;
  int receive_bytes_max = 16 << 20;  // of one request message
  int pending_max = 1024;            // requests being read and tokenized
};

// The default name of a checkpoint in the API: that of its folder.
std::string ModelNameOf(const std::string& directory);

// Owns the services; the engine must outlive it and be started.
class Server {
 public:
  // Listening and SERVING on return. UNAVAILABLE where the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Engine& engine, const ServerOptions& options);

  ~Server();  // as Drain(zero)

  // The bound port; 0 without an address.
  int port() const { return port_; }

  // A channel to this server without a socket.
  std::shared_ptr<grpc::Channel> InProcessChannel();

  // Health NOT_SERVING, no new requests (UNAVAILABLE); waits for open ones up to `timeout`, then ends the
  // rest with UNAVAILABLE; then stops. True: all could finish. May be called once.
  bool Drain(absl::Duration timeout);

 private:
  Server(Engine& engine, const ServerOptions& options);
  absl::Status Listen(const ServerOptions& options);

  Engine& engine_;
  WorkerPool workers_;
  CallRegistry calls_;
  GenerationService generation_service_;
  ModelService model_service_;
  std::unique_ptr<grpc::Server> grpc_server_;
  int port_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_SERVER_SERVER_H_
