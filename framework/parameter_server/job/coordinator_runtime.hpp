#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/framework/parameter_server/job/job_program.hpp>
#include <tessera/framework/parameter_server/job/server_cluster.hpp>
#include <tessera/framework/parameter_server/job/task_connection.hpp>
#include <tessera/framework/parameter_server/job/watchdog.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>
#include <tessera/framework/parameter_server/worker/closure_queue.hpp>
#include <tessera/framework/parameter_server/worker/worker_connection.hpp>

namespace tessera::detail {

/// The coordinator's side of a job: exchanges heartbeats with all tasks, sends them the program's
/// progress, and ends the job when a parameter server is lost. Thread-safe.
class CoordinatorRuntime {
 public:
  /// Starts connecting to the tasks. Both arguments must outlive this object.
  CoordinatorRuntime(const ServerCluster& cluster, const strategy::ParameterServerOptions& options);
  /// Notifies the tasks that the job is over.
  ~CoordinatorRuntime();

  // For the program.

  /// Waits for all parameter servers and one worker with the same program. Throws ConfigError for a
  /// task with another program, CommError if a task does not connect, Interrupted on a signal.
  void connect(const JobProgram& program);
  void set_program(const JobProgram& program);
  int begin_phase();
  void end_phase(const std::string& result);
  /// Ends the job with an error, which all later calls throw, and a line, which the tasks show.
  void fail(std::exception_ptr error, const std::string& line);
  void throw_if_failed() const;
  const std::shared_ptr<ClosureQueue>& closures() const { return closures_; }
  StoreClient& store();
  const std::string& job() const { return job_; }
  int phase() const { return phase_; }
  /// Returns the number of groups of variables on the servers.
  int groups() const { return groups_; }
  void set_groups(int groups) { groups_ = groups; }
  int64_t workers_lost() const { return workers_lost_; }

  // For the connections' threads.

  /// State that a task has already received.
  struct Sent {
    int64_t version = -1;
    std::string program = {};
    size_t results = 0;
  };
  rpc::CoordinatorHeartbeat next_heartbeat(Sent& sent) const;
  void wait_for_change(const Sent& sent, std::chrono::milliseconds time,
                       const std::stop_token& stop);
  Watchdog& watch() { return watch_; }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  /// Whether a worker can run closures of the present fit.
  bool is_ready(const TaskState& worker) const;
  void state_changed();
  /// Ends the job with the caught exception; for the catch clause of the thread of task `name`.
  void fail_in_thread(const std::string& name) noexcept;
  /// Handles the loss of a connected task.
  void on_lost(const TaskConnection& task, const std::string& reason);
  /// Handles a task that works for another coordinator.
  void on_refused(const TaskConnection& task, const std::string& reason);
  void on_other_program(const TaskConnection& task, const std::string& line);
  /// Handles a parameter server that a worker cannot reach.
  void on_unreachable(int server, const std::string& line);
  /// Ends the job if there has been no worker for connect_timeout, or if there is none for pending
  /// closures when a signal asks this process to stop.
  void check_workers();
  /// Waits briefly until the task is known to be lost.
  void wait_until_disconnected(const TaskConnection& task, const std::stop_token& stop);

 private:
  void finish(const std::string& failure);
  void notify_end();
  std::vector<std::string> missing() const;
  bool all_notified() const;
  [[noreturn]] void throw_missing(const std::vector<std::string>& tasks) const;

  const ServerCluster& cluster_;
  const strategy::ParameterServerOptions& options_;
  const std::string job_;
  const std::shared_ptr<ClosureQueue> closures_;
  std::atomic<int> phase_{0}, groups_{0};
  std::atomic<int64_t> workers_lost_{0};
  std::atomic<bool> connected_{false};
  std::unique_ptr<StoreClient> store_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  int64_t version_ = 0;  ///< incremented with every change that tasks have to receive
  std::string program_;
  std::vector<std::string> results_;
  bool over_ = false;
  std::string failure_;
  std::exception_ptr error_;
  std::chrono::steady_clock::time_point last_worker_ = std::chrono::steady_clock::now();

  Watchdog watch_;
  std::vector<std::unique_ptr<TaskConnection>> servers_, evaluators_;
  std::vector<std::unique_ptr<WorkerConnection>> workers_;
};

}  // namespace tessera::detail
