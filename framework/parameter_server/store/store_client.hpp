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

/// Variables that rest on the parameter servers, and the optimizer that updates them there.
struct VariableGroup {
  std::vector<Variable> variables;
  OptimizerHandle optimizer;  ///< null: none
  PartPlan plan;
  bool used = true;  ///< false: another group has its variables now, and their values
};

/// What all tasks must have alike of an optimizer, one line: its class and options without a
/// learning rate that is a number, which training may change.
std::string describe_optimizer(const OptimizerHandle& optimizer);

/// A server that did not answer.
class LostServer : public CommError {
 public:
  LostServer(int server, const std::string& what) : CommError(what), server_(server) {}
  int server() const { return server_; }

 private:
  int server_;
};

/// Brings variables to the parameter servers and back: what a task other than those needs of them.
/// Every call talks to all servers at once, and throws LostServer if one does not answer within
/// `patience`, or that and a second for each 10 MB, and ConfigError for what one refuses, naming
/// it. For one thread at a time.
class StoreClient {
 public:
  /// `names`: what errors call the servers, "ps 0 (127.0.0.1:4000)".
  StoreClient(std::string job, std::vector<std::shared_ptr<grpc::Channel>> servers,
              std::vector<std::string> names, std::chrono::milliseconds patience);
  ~StoreClient();

  /// Returns once all servers have the group, too. Throws ConfigError if they have another one.
  void define(int group, const VariableGroup& of);
  /// Sets the servers to the variables' values, to the optimizer's learning rate if that is a
  /// number and, with `slots`, to all that the optimizer keeps of them and its steps.
  void assign(int group, const VariableGroup& of, bool slots);
  /// Sets the servers to the optimizer's learning rate. Does nothing if that is a schedule, which
  /// follows each server's own steps, or if there is no optimizer.
  void set_learning_rate(int group, const VariableGroup& of);
  /// Brings the present values into the variables. Those of servers where nothing has changed since
  /// the last time are not sent again, unless somebody has assigned the variables here. With
  /// `slots`, what the optimizer keeps of them and its steps, too.
  void pull(int group, const VariableGroup& of, bool slots);
  /// Sends gradients, undefined for none, and `added`, what is added to values, undefined for
  /// nothing; both in the variables' order, on the host, whole. It is a step of the optimizer if
  /// there is any gradient. True if all servers that got something had it before. Throws ShapeError
  /// for a tensor that is not of its variable's shape.
  bool push(int group, const VariableGroup& of, const PushId& id,
            const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& added);
  /// The state of the group on each server.
  std::vector<StoreState> states(int group);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::detail
