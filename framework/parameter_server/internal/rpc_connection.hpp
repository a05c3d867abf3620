#pragma once

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server.h>

#include <tessera/framework/cluster/internal/job_secret.hpp>
#include <tessera/framework/parameter_server/closure.hpp>
#include <tessera/framework/parameter_server/internal/rpc_value.hpp>

namespace tessera::detail {

/// Maximum size of a message on the wire: a closure's values and their envelope.
inline constexpr int max_wire_bytes = static_cast<int>(max_message_bytes) + (1 << 20);

/// Returns a channel with its own connection to "host:port", opened by the first call and reopened
/// whenever it breaks. With a secret it uses mutual TLS.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const std::string& secret = {});

/// Whether a call failed because the peer has another secret or none.
bool is_other_secret(const grpc::Status& status);

/// Starts a server on the port of `address`: on loopback only if its host is a loopback address,
/// else on all interfaces, with a warning if there is no secret. `clients`: number of concurrent
/// callers. Throws CommError naming `where` if the port is taken.
std::unique_ptr<grpc::Server> open_server(const std::string& where, const std::string& address,
                                          const JobAccess& access, int clients,
                                          const std::vector<grpc::Service*>& services);

/// Cancels all calls and waits for their handlers.
void close_server(grpc::Server& server);

}  // namespace tessera::detail
