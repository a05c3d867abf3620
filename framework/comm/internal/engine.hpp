#pragma once

#include <cstdint>

#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// What carries tensors between processes, and nothing else: a Communicator whose collectives run
/// in the order of their calls, each begun before it returns. abort() makes all of them, also those
/// under way, throw CommError at once.
class Engine : public Communicator {
 public:
  /// What the collectives up to the next call belong to. Ranks that pass different numbers do not
  /// exchange anything: what is sent for one call is never taken for another, whatever its size.
  virtual void set_call(uint64_t call) = 0;
  std::vector<std::string> gather(const std::string& key, const std::string& text) final;
};

}  // namespace tessera::detail
