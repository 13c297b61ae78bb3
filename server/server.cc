#include "server/server.h"

#include <chrono>
#include <filesystem>

#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"
#include "grpc/health/v1/health.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"
#include "server/response_conversion.h"

namespace nestor {
namespace {

constexpr int kWorkers = 2;

// Clients may ping every ten seconds, also between calls: long generations go through proxies that need it.
void AllowKeepalive(grpc::ServerBuilder& builder) {
  constexpr int kPingIntervalMs = 10'000;
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

// Why nobody can listen there, by trying: gRPC does not say.
std::string ListenObstacle(const std::string& address) {
  namespace ip = boost::asio::ip;
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  boost::asio::io_context context;
  boost::system::error_code error;
  ip::tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, address.substr(colon + 1), ip::resolver_base::passive, error);
  if (!error) {
    ip::tcp::acceptor acceptor(context, found.begin()->endpoint().protocol());
    acceptor.bind(found.begin()->endpoint(), error);
    if (!error) acceptor.listen(1, error);
  }
  return error ? error.message() : "gRPC could not bind it";
}

}  // namespace

std::string ModelNameOf(const std::string& directory) {
  const std::filesystem::path path(directory);
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

Server::Server(Engine& engine, const ServerOptions& options)
    : engine_(engine),
      workers_(kWorkers, options.pending_max),
      generation_service_(engine, options.model_name, workers_, calls_),
      model_service_(DescribeModel(engine, options.model_name)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Engine& engine, const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server(engine, options));
  NESTOR_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

absl::Status Server::Listen(const ServerOptions& options) {
  grpc::EnableDefaultHealthCheckService(true);
  if (options.reflection) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // Reflection describes what the program knows of; gRPC's own health service comes without a description.
    google::protobuf::LinkMessageReflection<grpc::health::v1::HealthCheckRequest>();
  }
  grpc::ServerBuilder builder;
  int port = -1;
  if (!options.address.empty()) {
    builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
    // Two servers on one port would share its clients in turn.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  }
  builder.SetMaxReceiveMessageSize(options.receive_bytes_max);
  AllowKeepalive(builder);
  builder.RegisterService(&generation_service_);
  builder.RegisterService(&model_service_);
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        StrCat("cannot listen on ", options.address, ": ", ListenObstacle(options.address)));
  }
  port_ = options.address.empty() ? 0 : port;
  grpc::HealthCheckServiceInterface* const health = grpc_server_->GetHealthCheckService();
  health->SetServingStatus(v1::GenerationService::service_full_name(), true);
  health->SetServingStatus(v1::ModelService::service_full_name(), true);
  return absl::OkStatus();
}

Server::~Server() {
  if (grpc_server_ != nullptr) Drain(absl::ZeroDuration());
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc_server_->InProcessChannel(arguments);
}

bool Server::Drain(absl::Duration timeout) {
  grpc_server_->GetHealthCheckService()->Shutdown();
  engine_.StopAdmission();
  const bool drained = calls_.AwaitNone(timeout);
  if (!drained) calls_.AbandonAll();
  // For abandoned calls to end and clients to hear of it; watchers of health only have to be told.
  const auto goodbye = std::chrono::seconds(drained ? 1 : 5);
  grpc_server_->Shutdown(std::chrono::system_clock::now() + goodbye);
  grpc_server_->Wait();
  grpc_server_.reset();
  return drained;
}

}  // namespace nestor
