#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// How a process connects with the other ranks.
struct PeerSocketOptions {
  int rank = 0;
  int size = 1;
  /// The address or host name by which the other ranks reach this process.
  std::string address = "127.0.0.1";
  /// What every process of the job knows; empty: what rank 0 draws, for the others alone to hear.
  std::string secret = {};
  /// How long to wait for each of the others.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// The texts of all ranks, by rank, from that of this one. Called once.
  std::function<std::vector<std::string>(const std::string& text)> gather;
};

/// A connection to every other rank, by rank, over which each side has proved to the other that it
/// is of this run. Whatever else connects meanwhile is turned away, and waited for by nobody;
/// nobody listens any more once all are there. Not blocking, and nothing was read beyond the
/// proofs. Collective. Throws CommError naming the rank that does not come or cannot be reached.
std::vector<FileDescriptor> connect_peers(const PeerSocketOptions& options);

}  // namespace tessera::detail
