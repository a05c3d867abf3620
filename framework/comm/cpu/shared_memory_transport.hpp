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
  /// The texts of all ranks, by rank, from that of this one. Called several times.
  std::function<std::vector<std::string>(const std::string& text)> gather;
  /// Makes the channel to ranks that share no memory with this one; called on every rank if there
  /// are any such two.
  std::function<std::unique_ptr<Transport>()> other;
};

/// Exchanges messages with ranks of this host through memory that both map, and with others through
/// `other`. Ranks share memory where both can open each other's: on one host, in one container, of
/// one user. Collective. A killed process leaves nothing behind.
std::unique_ptr<Transport> shared_memory_transport(const SharedMemoryOptions& options);

}  // namespace tessera::detail
