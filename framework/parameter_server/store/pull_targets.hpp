#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include <tessera/framework/parameter_server/store/store_client.hpp>

namespace tessera::detail {

/// Returns a variable of a group followed by its slot variables, which are created if needed.
std::vector<Variable> variable_and_slots(const VariableGroup& group, size_t variable);

/// Local memory that pulled values are written to: the variable's own if it is replicated on the
/// host, otherwise a temporary tensor that finish() assigns.
class PullTargets {
 public:
  PullTargets(const VariableGroup& group, bool slots);
  /// Returns the memory for a part's tensor that is about to be received. Thread-safe. Throws
  /// ConfigError for an unknown kind.
  std::span<std::byte> begin(const Part& part, int kind);
  /// Assigns all tensors that were begun, once they are complete.
  void finish();

 private:
  struct Target {
    Variable variable;
    at::Tensor tensor = {};
    bool in_place = false;
  };
  static void open(Target& target);
  static void close(Target& target);

  std::mutex mutex_;
  std::vector<std::vector<Target>> targets_;  ///< by variable and kind
};

}  // namespace tessera::detail
