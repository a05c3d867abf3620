#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/parameter_server/closure.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>

namespace tessera::strategy {

/// Future of a closure's result (coordinator.RemoteValue). Copies share the result.
class RemoteValue {
 public:
  /// Waits for the result. Throws what the closure threw, or StateError if it was cancelled.
  const ClosureValue& fetch() const;
  bool ready() const;
  /// Returns the number of the closure, from 1.
  int64_t closure() const;

 private:
  friend class ClusterCoordinator;
  struct State;
  explicit RemoteValue(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Dispatches closures to the workers of a ParameterServerStrategy
/// (tf.distribute.coordinator.ClusterCoordinator). If a worker is lost, its closure is restarted on
/// another worker, or on the same one after its restart; updates that a parameter server has
/// already received are not applied twice. An error of a closure is thrown by the next call of
/// schedule() or join() and cancels all closures that have not started. A lost parameter server
/// ends the job: every call throws CommError. Not thread-safe.
class ClusterCoordinator {
 public:
  /// Statistics of a coordinator.
  struct Counts {
    int64_t scheduled = 0;
    int64_t done = 0;         ///< completed closures, each counted once
    int64_t rescheduled = 0;  ///< number of restarts of closures because of a lost worker
    int64_t workers_lost = 0;
    std::vector<int64_t> done_by_worker = {};
    /// updates that each parameter server has applied since the job began
    std::vector<int64_t> updates = {};
  };

  /// Waits for all parameter servers and one worker, then sends the variables' present values to
  /// the servers. Throws ConfigError if this task is not the coordinator or a task runs another
  /// program, CommError if a parameter server or all workers are missing, Interrupted on a signal.
  explicit ClusterCoordinator(const ParameterServerStrategy& strategy);
  ~ClusterCoordinator();
  ClusterCoordinator(const ClusterCoordinator&) = delete;
  ClusterCoordinator& operator=(const ClusterCoordinator&) = delete;

  /// Queues a closure. Throws ConfigError for an unregistered name or arguments of more than 64
  /// MiB.
  RemoteValue schedule(const std::string& function, const ClosureValue& arguments = {},
                       const std::vector<PerWorkerDataset>& datasets = {});
  /// Waits until all closures are done.
  void join();
  /// Whether all closures are done.
  bool done();
  /// Waits for the next closure to end and returns it, each once, in the order in which they end;
  /// nullopt if none is left. Throws like join().
  std::optional<RemoteValue> next_done();
  /// Cancels the closures that have not started, which are the last ones scheduled; returns how
  /// many.
  int64_t cancel_waiting();
  const ClosureValue& fetch(const RemoteValue& value) { return value.fetch(); }
  std::vector<ClosureValue> fetch(const std::vector<RemoteValue>& values);
  /// Returns a new iteration of a registered dataset; every worker starts it from the beginning
  /// when a closure first uses it. Throws ConfigError for an unregistered name.
  PerWorkerDataset create_per_worker_dataset(const std::string& name);
  /// Updates the local variables and the optimizers' slot variables from the servers.
  void pull();
  Counts counts();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::strategy
