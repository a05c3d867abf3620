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

/// Largest message on the wire: a closure's values and what is around them.
inline constexpr int max_wire_bytes = static_cast<int>(max_message_bytes) + (1 << 20);

/// A connection of its own to "host:port", which begins with the first call and is made again
/// whenever it breaks. With a secret it is encrypted, and made with who knows the secret, too.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const std::string& secret = {});

/// Whether a call failed because the other side does not know the secret, or has none.
bool is_other_secret(const grpc::Status& status);

/// Listens on the port of `address`: on loopback alone if that is the host, else on all interfaces,
/// which without a secret it says. `clients`: how many call at the same time. Throws CommError
/// naming `where` if the port is taken.
std::unique_ptr<grpc::Server> open_server(const std::string& where, const std::string& address,
                                          const JobAccess& access, int clients,
                                          const std::vector<grpc::Service*>& services);

/// Ends all calls and waits for their handlers.
void close_server(grpc::Server& server);

}  // namespace tessera::detail
