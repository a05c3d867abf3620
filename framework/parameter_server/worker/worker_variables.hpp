#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/parameter_server/store/store_client.hpp>

namespace tessera::detail {

/// The variables of a worker while it runs a closure: they come from the servers, gradients and
/// what the closure assigns go there.
class WorkerVariables {
 public:
  /// `id`: of the closure's first push. All must outlive it.
  WorkerVariables(const std::vector<VariableGroup>& groups, size_t count, StoreClient& store,
                  const PushId& id);
  /// Optimizers update variables here again.
  ~WorkerVariables();
  WorkerVariables(const WorkerVariables&) = delete;
  WorkerVariables& operator=(const WorkerVariables&) = delete;

  /// The servers' present values; what was assigned before is sent first.
  void pull();
  /// Sends what was assigned since the last pull, as differences.
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
