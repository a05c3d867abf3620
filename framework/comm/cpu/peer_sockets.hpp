#pragma once

#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/comm/cpu/gloo_transport.hpp>

namespace tessera::detail {

/// Connects to every other rank; returns the sockets, by rank, on which both sides have proved that
/// they belong to this run. Any other connection is rejected without delaying the ranks; all
/// listeners are closed at the end. The sockets are non-blocking, and nothing was read beyond the
/// proofs. Collective. Throws CommError naming the rank that does not connect or cannot be reached.
std::vector<FileDescriptor> connect_peers(const GlooOptions& options);

}  // namespace tessera::detail
