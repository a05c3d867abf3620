#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include <tessera/framework/parameter_server/store/store_client.hpp>

namespace tessera::detail {

/// A variable of a group, then what the optimizer keeps for it, which is made if it is not there.
std::vector<Variable> tensors_of(const VariableGroup& group, size_t variable);

/// The memory on this task that values from the servers go to: a variable's own where it lies whole
/// on the host, else a tensor that is assigned in the end.
class PullTargets {
 public:
  PullTargets(const VariableGroup& group, bool slots);
  /// Memory of a tensor of a part, which begins to come. Safe to call from several threads. Throws
  /// ConfigError for a kind that there is not.
  std::span<std::byte> begin(const Part& part, int kind);
  /// All that has begun is there.
  void finish();

 private:
  struct Target {
    Variable variable;
    at::Tensor whole = {};
    bool in_place = false;
  };
  static void open(Target& target);
  static void close(Target& target);

  std::mutex mutex_;
  std::vector<std::vector<Target>> targets_;  ///< by variable and kind
};

}  // namespace tessera::detail
