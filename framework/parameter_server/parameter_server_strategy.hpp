#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/parameter_server/closure.hpp>
#include <tessera/framework/parameter_server/partitioner.hpp>
#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::detail {
class ServerJob;
class StepExecutor;
}  // namespace tessera::detail

namespace tessera::strategy {

/// The options of ParameterServerStrategy.
struct ParameterServerOptions {
  /// how variables are partitioned over the servers (default: not at all)
  Partitioner variable_partitioner = {};
  /// the cluster and this task; without a source it is read from TF_CONFIG, keeping this secret
  Cluster cluster = {};
  /// number of virtual CPUs of each worker, over which its batches are sharded
  int64_t devices_per_worker = 1;
  /// how long the coordinator waits for the parameter servers and a first worker, and tasks for the
  /// coordinator
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(5);
  /// how long a task may be unresponsive before it counts as lost (an ended process is noticed at
  /// once); also how much later than the coordinator a parameter server may call join() or fit
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
};

/// Asynchronous training (tf.distribute.ParameterServerStrategy). Variables are stored on parameter
/// servers; workers, scheduled by the coordinator (the task "chief"), pull them and push gradients,
/// each at its own pace; an evaluator watches checkpoints.
///
/// All tasks run the same program. It creates the strategy and the model and makes the same
/// registrations on every task. Then either all tasks call fit, or all but the coordinator call
/// join(), and the coordinator uses a ClusterCoordinator:
///
///     ParameterServerStrategy strategy;
///     strategy.place(variables, optimizer);
///     strategy.add_dataset("train", [&](const InputContext&) { return data; });
///     strategy.add_function("step", [&](WorkerContext& worker) { return step(worker); });
///     if (!strategy.is_coordinator()) return strategy.join();
///     ClusterCoordinator coordinator(strategy);
///     const PerWorkerDataset parts = coordinator.create_per_worker_dataset("train");
///     for (int i = 0; i < 100; ++i) coordinator.schedule("step", {}, {parts});
///     coordinator.join();
///
/// A parameter server stores each part of a variable as one host tensor. mesh() is the mesh of this
/// worker alone, and num_replicas_in_sync() the number of its devices, as workers do not
/// synchronize their batches.
class ParameterServerStrategy final : public Strategy {
 public:
  /// On workers and parameter servers listens on the task's port. Throws ConfigError for an invalid
  /// cluster or one without chief, workers or ps, CommError if the port is taken.
  explicit ParameterServerStrategy(ParameterServerOptions options = {});
  /// On the coordinator notifies the other tasks that the job is over.
  ~ParameterServerStrategy() override;

  TaskType task_type() const;
  /// Returns the index of this task among the tasks of its type.
  int task_index() const;
  bool is_coordinator() const { return task_type() == TaskType::chief; }

  /// Models compiled in this scope run fit on the cluster.
  [[nodiscard]] std::unique_ptr<detail::StrategyScope> scope() const override;

  /// Stores variables on the parameter servers. To be called in the same order on every task. The
  /// local variables become copies: the coordinator's are the initial values; workers update theirs
  /// before each closure. `optimizer` may be null. Throws ConfigError for a variable or optimizer
  /// that was already placed.
  void place(const std::vector<Variable>& variables, const OptimizerHandle& optimizer);
  /// Registers a function by name. Throws ConfigError for a name that is taken.
  void add_function(const std::string& name, ClosureFunction function);
  /// Registers a dataset by name; `function` is called on each worker with its index.
  void add_dataset(const std::string& name, DatasetFunction function,
                   const PerWorkerOptions& options = {});

  /// Works until the job is over; for tasks other than the coordinator. Returns 0, for main().
  /// Throws CommError if the coordinator or a parameter server is lost.
  int join();
  /// Whether the job is over or its coordinator lost; for tasks other than the coordinator, and for
  /// SidecarEvaluatorOptions::over. Always false on an evaluator that the cluster does not list.
  bool job_over() const;

  detail::ServerJob& job() const { return *job_; }
  const std::shared_ptr<detail::ServerJob>& shared_job() const { return job_; }

 private:
  std::shared_ptr<detail::ServerJob> job_;
  std::shared_ptr<detail::StepExecutor> steps_;
};

}  // namespace tessera::strategy
