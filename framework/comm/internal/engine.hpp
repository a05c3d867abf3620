#pragma once

#include <cstdint>

#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// Carries tensors between processes, and nothing else: a Communicator whose collectives run in
/// call order, each started before the call returns. abort() makes all of them, including those in
/// progress, throw CommError at once.
class Engine : public Communicator {
 public:
  /// Sets the call that the following collectives belong to. Ranks that pass different numbers
  /// exchange nothing: data sent for one call is never received for another, whatever its size.
  virtual void set_call(uint64_t call) = 0;
  /// Returns once the messages of completed collectives arrive even if this process ends, after a
  /// few seconds at most.
  virtual void flush() {}
  std::vector<std::string> gather(const std::string& key, const std::string& text) final;
};

}  // namespace tessera::detail
