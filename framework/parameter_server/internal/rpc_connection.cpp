#include <tessera/framework/parameter_server/internal/rpc_connection.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>
#include <tessera/framework/parameter_server/internal/rpc_identity.hpp>

namespace tessera::detail {

namespace {

/// Threads for blocked handlers: the coordinator's streams, pulls, pushes and unknown peers.
constexpr int spare_threads = 60;
/// Deadline for a new connection's TLS handshake.
constexpr int handshake_milliseconds = 10'000;

std::string listen_address(const HostPort& at) {
  if (!is_loopback(at.host)) return str("[::]:", at.port);
  const bool six = at.host == "::1";
  return six ? str("[::1]:", at.port)
             : str(at.host == "localhost" ? "127.0.0.1" : at.host, ":", at.port);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const std::string& secret) {
  if (secret.empty()) return grpc::InsecureChannelCredentials();
  const RpcIdentity own = identity_of(secret);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = own.certificate;
  options.pem_private_key = own.key;
  options.pem_cert_chain = own.certificate;
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const std::string& secret) {
  if (secret.empty()) return grpc::InsecureServerCredentials();
  const RpcIdentity own = identity_of(secret);
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = own.certificate;
  options.pem_key_cert_pairs.push_back({own.key, own.certificate});
  return grpc::SslServerCredentials(options);
}

/// Silences gRPC's log, which would copy bytes sent by unknown peers to standard error.
void silence_log() {
  static const bool asked_for = std::getenv("GRPC_VERBOSITY") != nullptr;
  if (!asked_for) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const std::string& secret) {
  silence_log();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetMaxReceiveMessageSize(max_wire_bytes);
  if (!secret.empty()) arguments.SetSslTargetNameOverride(identity_name);
  return grpc::CreateCustomChannel(address, channel_credentials(secret), arguments);
}

bool is_other_secret(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         status.error_message().find("andshake failed") != std::string::npos;
}

std::unique_ptr<grpc::Server> open_server(const std::string& where, const std::string& address,
                                          const JobAccess& access, int clients,
                                          const std::vector<grpc::Service*>& services) {
  silence_log();
  const HostPort at = read_host_port(where, address);
  const std::string open = check_access(where, "this task", at.host, access);
  if (!open.empty()) std::cerr << open + "\n" << std::flush;
  grpc::ResourceQuota quota("tessera");
  quota.SetMaxThreads(spare_threads + 4 * clients);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(max_wire_bytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, handshake_milliseconds);
  builder.AddListeningPort(listen_address(at), server_credentials(access.secret), &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    throw CommError(where, "this task can listen on its port", address + ", which is taken",
                    "end what listens there, or give the task another port on every task");
  }
  return server;
}

void close_server(grpc::Server& server) {
  server.Shutdown(std::chrono::system_clock::now());
  server.Wait();
}

}  // namespace tessera::detail
