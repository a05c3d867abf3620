#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/parameter_server/store/parameter_store.hpp>
#include <tessera/framework/parameter_server/store/part_plan.hpp>

namespace grpc {
class Channel;
}

namespace tessera::detail {

/// Variables stored on the parameter servers, and the optimizer that updates them there.
struct VariableGroup {
  std::vector<Variable> variables;
  OptimizerHandle optimizer;  ///< null: none
  PartPlan plan;
  bool used = true;  ///< false: another group now holds its variables' values
};

/// Describes, in one line, the part of an optimizer that must be equal on all tasks: its class and
/// options, without a constant learning rate, which training may change.
std::string describe_optimizer(const OptimizerHandle& optimizer);

/// Thrown if a server did not answer.
class LostServer : public CommError {
 public:
  LostServer(int server, const std::string& what) : CommError(what), server_(server) {}
  int server() const { return server_; }

 private:
  int server_;
};

/// Client of the parameter servers: pushes and pulls variables. Every call contacts all servers
/// concurrently. It throws LostServer if one does not answer within `patience` plus a second per
/// 10 MiB transferred, and ConfigError naming a server that refuses the call. Not thread-safe.
class StoreClient {
 public:
  /// `names`: names of the servers for errors, such as "ps 0 (127.0.0.1:4000)".
  StoreClient(std::string job, std::vector<std::shared_ptr<grpc::Channel>> servers,
              std::vector<std::string> names, std::chrono::milliseconds patience);
  ~StoreClient();

  /// Waits until all servers have added the same group. Throws ConfigError if theirs differs.
  void define(int group, const VariableGroup& definition);
  /// Sends the variables' values, the optimizer's learning rate if it is constant and, with
  /// `slots`, its slot variables and number of steps.
  void assign(int group, const VariableGroup& definition, bool slots);
  /// Sends the optimizer's learning rate. Does nothing without an optimizer, or for a schedule,
  /// which follows each server's own steps.
  void set_learning_rate(int group, const VariableGroup& definition);
  /// Pulls the servers' values into the variables; with `slots` also the optimizer's slot variables
  /// and number of steps. Servers without changes since the last pull send nothing, unless the
  /// local variables were assigned in the meantime.
  void pull(int group, const VariableGroup& definition, bool slots);
  /// Sends gradients and `added`, differences to add to the values: full host tensors in the
  /// variables' order, undefined for none. Counts as an optimizer step if there is any gradient.
  /// Returns whether the push was a duplicate on all servers that received it. Throws ShapeError
  /// for a tensor that does not have its variable's shape.
  bool push(int group, const VariableGroup& definition, const PushId& id,
            const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& added);
  /// Returns the state of the group on each server.
  std::vector<StoreState> states(int group);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::detail
