#pragma once

#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/comm/cpu/gloo_transport.hpp>

namespace tessera::detail {

/// A connection to every other rank, by rank, over which each side has proved to the other that it
/// is of this run. Whatever else connects meanwhile is turned away, and waited for by nobody;
/// nobody listens any more once all are there. Not blocking, and nothing was read beyond the
/// proofs. Collective. Throws CommError naming the rank that does not come or cannot be reached.
std::vector<FileDescriptor> connect_peers(const GlooOptions& options);

}  // namespace tessera::detail
