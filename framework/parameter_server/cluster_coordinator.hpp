#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/parameter_server/closure.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>

namespace tessera::strategy {

/// The result of a closure, once it is there (coordinator.RemoteValue). Copies are the same one.
class RemoteValue {
 public:
  /// Waits for it. Throws what the closure threw, or StateError if it was cancelled.
  const ClosureValue& fetch() const;
  bool ready() const;
  /// Number of the closure, from 1.
  int64_t closure() const;

 private:
  friend class ClusterCoordinator;
  struct State;
  explicit RemoteValue(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Hands closures to the workers of a ParameterServerStrategy
/// (tf.distribute.coordinator.ClusterCoordinator). A closure whose worker is lost is begun anew on
/// another one, or on the same after its restart; the updates that it had already sent to a
/// parameter server are not made again there. An error of a closure is thrown by the next call of
/// schedule() or join(), and cancels all closures that have not begun. A lost parameter server ends
/// the job: CommError, on every call. To be used from one thread.
class ClusterCoordinator {
 public:
  /// What a coordinator has seen so far.
  struct Counts {
    int64_t scheduled = 0;
    int64_t done = 0;         ///< closures, each counted once
    int64_t rescheduled = 0;  ///< times that a closure began anew because its worker was lost
    int64_t workers_lost = 0;
    std::vector<int64_t> done_by_worker = {};
    /// Updates that each parameter server applied since the job began.
    std::vector<int64_t> updates = {};
  };

  /// Waits for all parameter servers and one worker, then sets the servers to the variables'
  /// present values. Throws ConfigError on another task or where a task runs another program,
  /// CommError if not all parameter servers and a worker come, Interrupted on a signal.
  explicit ClusterCoordinator(const ParameterServerStrategy& strategy);
  ~ClusterCoordinator();
  ClusterCoordinator(const ClusterCoordinator&) = delete;
  ClusterCoordinator& operator=(const ClusterCoordinator&) = delete;

  /// Puts a closure into the queue. Throws ConfigError for a name that is not registered or
  /// arguments of more than 64 MB.
  RemoteValue schedule(const std::string& function, const ClosureValue& arguments = {},
                       const std::vector<PerWorkerDataset>& datasets = {});
  /// Waits until all closures are done.
  void join();
  /// Whether all closures are done.
  bool done();
  /// Waits for the next closure to end, in the order in which they end; each is given once. Nothing
  /// if none is left. Throws as join().
  std::optional<RemoteValue> next_done();
  /// Takes back the closures that have not begun; returns how many. Closures begin in the order in
  /// which they were scheduled.
  int64_t cancel_waiting();
  const ClosureValue& fetch(const RemoteValue& value) { return value.fetch(); }
  std::vector<ClosureValue> fetch(const std::vector<RemoteValue>& values);
  /// Every worker begins the dataset anew when a closure first asks for it. Throws ConfigError for
  /// a name that is not registered.
  PerWorkerDataset create_per_worker_dataset(const std::string& name);
  /// Brings the servers' present values, and what optimizers keep, into the variables here.
  void pull();
  Counts counts();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::strategy
