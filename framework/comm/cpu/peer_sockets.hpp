#pragma once

#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/internal/message_cipher.hpp>
#include <tessera/framework/comm/cpu/gloo_transport.hpp>

namespace tessera::detail {

/// A connection on which both sides have proved that they belong to this run.
struct PeerConnection {
  FileDescriptor socket;
  /// keys for encrypting it, derived from the secret and both sides' nonces
  SessionKeys keys = {};
};

/// Connects to every other rank; returns the connections, by rank. Each side has proved to the
/// other that it belongs to this run. Any other connection is rejected without delaying the ranks;
/// all listeners are closed at the end. The sockets are non-blocking, and nothing was read beyond
/// the proofs. Collective. Throws CommError naming the rank that does not connect or cannot be
/// reached.
std::vector<PeerConnection> connect_peers(const GlooOptions& options);

}  // namespace tessera::detail
