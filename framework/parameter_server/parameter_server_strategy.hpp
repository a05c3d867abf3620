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
  /// How variables are cut; an empty one: not.
  Partitioner variable_partitioner = {};
  /// Which task this is, of which cluster; without a source: from TF_CONFIG, with this secret.
  Cluster cluster = {};
  /// Virtual CPUs of each worker, over which it cuts its batches.
  int64_t devices_per_worker = 1;
  /// How long the coordinator waits for parameter servers and a first worker, and tasks for it.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(5);
  /// After how long a task that is silent is given up. A process that ends is noticed at once. A
  /// parameter server may also come to join() or fit by that much later than the coordinator.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
};

/// Asynchronous training (tf.distribute.ParameterServerStrategy): variables rest on parameter
/// servers; workers read them, compute gradients and send these there, each at its own pace, as the
/// coordinator (the task "chief") tells them; an evaluator watches checkpoints.
///
/// All tasks run the same program. It makes the strategy, its model and what it registers, alike on
/// every task, and then either calls fit, on all tasks, or join() on all but the coordinator, which
/// uses a ClusterCoordinator:
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
/// A parameter server holds each part of a variable as one host tensor. mesh() is the worker's own;
/// num_replicas_in_sync() its devices, as every worker is alone with its batch.
class ParameterServerStrategy final : public Strategy {
 public:
  /// On workers and parameter servers opens the port that the cluster has for the task. Throws
  /// ConfigError for a cluster that is described wrongly or lacks chief, workers or ps, CommError
  /// if the port is taken.
  explicit ParameterServerStrategy(ParameterServerOptions options = {});
  /// A coordinator tells the other tasks that the job is over.
  ~ParameterServerStrategy() override;

  TaskType task_type() const;
  /// Among tasks of its type.
  int task_index() const;
  bool is_coordinator() const { return task_type() == TaskType::chief; }

  /// Models compiled in the scope call fit over the cluster.
  [[nodiscard]] std::unique_ptr<detail::StrategyScope> scope() const override;

  /// Variables rest on the parameter servers from now on. On every task in the same order. What
  /// they are here is a copy: on the coordinator the values that they begin with; workers bring it
  /// up to date before each closure. `optimizer` may be null. Throws ConfigError for a variable or
  /// an optimizer that was placed before.
  void place(const std::vector<Variable>& variables, const OptimizerHandle& optimizer);
  /// Makes a function known by its name. Throws ConfigError for a name that is taken.
  void add_function(const std::string& name, detail::ClosureFunction function);
  /// Makes data known by its name: called on each worker, with its number among them.
  void add_dataset(const std::string& name, DatasetFunction function,
                   const PerWorkerOptions& options = {});

  /// On a task other than the coordinator: works until the job is over. Returns 0, for main().
  /// Throws CommError if the coordinator or a parameter server is lost.
  int join();
  /// On a task other than the coordinator: whether the job is over, or its coordinator lost; for
  /// SidecarEvaluatorOptions::over. An evaluator that the cluster does not list hears of neither.
  bool job_over() const;

  detail::ServerJob& job() const { return *job_; }
  const std::shared_ptr<detail::ServerJob>& shared_job() const { return job_; }

 private:
  std::shared_ptr<detail::ServerJob> job_;
  std::shared_ptr<detail::StepExecutor> steps_;
};

}  // namespace tessera::strategy
