#pragma once

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

namespace tessera::detail {

/// Connects to rank 0, again and again until it is there and lets this rank in. Throws CommError
/// naming the address after connect_timeout, ConfigError with rank 0's words where it refuses.
FrameSocket find_hub(const CoordinationOptions& options);

/// Says who this is over a connection to rank 0, and waits until it lets this rank in. Throws as
/// find_hub does.
FrameSocket introduce(const CoordinationOptions& options, FileDescriptor connection);

}  // namespace tessera::detail
