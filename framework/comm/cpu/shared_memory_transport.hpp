#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/comm/cpu/transport.hpp>

namespace tessera::detail {

/// How a process joins its peers on the same host.
struct SharedMemoryOptions {
  int rank = 0;
  int size = 1;
  /// Takes this rank's text and returns the texts of all ranks, by rank. Called several times.
  std::function<std::vector<std::string>(const std::string& text)> gather;
  /// Creates the transport between ranks that share no memory; called on every rank if any two
  /// ranks share none.
  std::function<std::unique_ptr<Transport>()> other;
};

/// Returns a transport through shared memory between ranks of this host, and through `other`
/// between all other ranks. Two ranks share memory if each can open the other's: on one host, in
/// one container, of one user. Collective. A killed process leaves nothing behind.
std::unique_ptr<Transport> shared_memory_transport(const SharedMemoryOptions& options);

}  // namespace tessera::detail
