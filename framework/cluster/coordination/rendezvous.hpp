#pragma once

#include <chrono>
#include <string>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

namespace tessera::detail {

/// How long join() waits at a time before it looks whether the caller has given up.
inline constexpr std::chrono::milliseconds patience_step{100};

/// Returns the line of an error that ends join() since the caller has given up.
std::string given_up_text(const CoordinationOptions& options);

/// Connects to rank 0, retrying until it listens, and waits for admission. Throws CommError naming
/// the address after connect_timeout, ConfigError with rank 0's text if it refuses this rank.
FrameSocket connect_to_server(const CoordinationOptions& options);

/// Registers with rank 0 over an open connection and waits for admission. Throws like
/// connect_to_server().
FrameSocket register_rank(const CoordinationOptions& options, FileDescriptor connection);

}  // namespace tessera::detail
