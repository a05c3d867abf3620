#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/parameter_server/store/store_client.hpp>

namespace tessera::detail {

/// Synchronizes a worker's variables with the servers while a closure runs: pulls values, pushes
/// gradients and the values that the closure assigns.
class WorkerVariables {
 public:
  /// Uses the first `count` groups and makes their optimizers push gradients. `id`: id of the
  /// closure's first push. The references must outlive this object.
  WorkerVariables(const std::vector<VariableGroup>& groups, size_t count, StoreClient& store,
                  const PushId& id);
  /// Makes the optimizers update local variables again.
  ~WorkerVariables();
  WorkerVariables(const WorkerVariables&) = delete;
  WorkerVariables& operator=(const WorkerVariables&) = delete;

  /// Calls push_assigned(), then pulls the servers' present values.
  void pull();
  /// Pushes, as differences, the values assigned since the last pull.
  void push_assigned();

 private:
  class GradientSender;
  struct Pulled {
    DTensor value;
    uint64_t version = 0;
  };
  void push_gradients(const Optimizer& optimizer, const std::vector<Variable>& variables,
                      const std::vector<DTensor>& gradients);
  void push(size_t group, const std::vector<at::Tensor>& gradients,
            const std::vector<at::Tensor>& added);
  at::Tensor assigned(size_t group, size_t variable);

  const std::vector<VariableGroup>& groups_;
  const size_t count_;
  StoreClient& store_;
  PushId next_;
  std::vector<std::vector<Pulled>> pulled_;
};

}  // namespace tessera::detail
