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

/// What the coordinator does in a job: it attends all tasks, tells them how far the program is, and
/// ends the job when a parameter server is lost. Safe to call from any thread.
class CoordinatorRuntime {
 public:
  /// Begins to attend tasks. Both must outlive it.
  CoordinatorRuntime(const ServerCluster& cluster, const strategy::ParameterServerOptions& options);
  /// Tells the tasks that the job is over.
  ~CoordinatorRuntime();

  // For the program.

  /// Waits for all parameter servers and one worker that agree with the program. Throws ConfigError
  /// for a task with another program, CommError if somebody does not come, Interrupted on a signal.
  void connect(const JobProgram& program);
  void set_program(const JobProgram& program);
  int begin_phase();
  void end_phase(const std::string& result);
  /// Ends the job with an error, which all further calls throw, and its line, which tasks show.
  void fail(std::exception_ptr error, const std::string& line);
  void throw_if_failed() const;
  const std::shared_ptr<ClosureQueue>& closures() const { return closures_; }
  StoreClient& store();
  const std::string& job() const { return job_; }
  int phase() const { return phase_; }
  /// How many groups of variables the servers have.
  int groups() const { return groups_; }
  void set_groups(int groups) { groups_ = groups; }
  int64_t workers_lost() const { return workers_lost_; }

  // For the threads that attend.

  /// What a task has been told.
  struct Sent {
    int64_t version = -1;
    std::string program = {};
    size_t results = 0;
  };
  rpc::CoordinatorBeat next_beat(Sent& sent) const;
  void wait_for_news(const Sent& sent, std::chrono::milliseconds time, const std::stop_token& stop);
  Watchdog& watch() { return watch_; }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  /// Whether a worker can take closures of the present fit.
  bool is_ready(const TaskState& worker) const;
  void state_changed();
  /// In a catch clause at the top of a thread for the task `name`: ends the job with the exception.
  void fail_in_thread(const std::string& name) noexcept;
  /// A task that was attended is gone.
  void lost(const TaskConnection& task, const std::string& reason);
  /// A task works for another coordinator.
  void refused(const TaskConnection& task, const std::string& reason);
  void other_program(const TaskConnection& task, const std::string& line);
  /// A worker does not reach a parameter server.
  void unreachable(int server, const std::string& line);
  /// Ends the job if there has been no worker for long, or is none for closures when a signal asks
  /// this process to stop.
  void check_workers();
  /// Waits until the task is known to be lost, a moment at most.
  void wait_until_lost(const TaskConnection& task, const std::stop_token& stop);

 private:
  void finish(const std::string& failure);
  void tell_end();
  std::vector<std::string> missing() const;
  bool all_told() const;
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
  int64_t version_ = 0;  ///< counts what tasks are told
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
