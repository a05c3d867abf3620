#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/launcher/child_process.hpp>
#include <tessera/framework/cluster/launcher/launch_task.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>
#include <tessera/framework/cluster/launcher/output_multiplexer.hpp>
#include <tessera/framework/cluster/membership/register_server.hpp>

namespace tessera::detail {

/// One start of all processes, watched until they end.
class LaunchAttempt {
 public:
  /// Starts all tasks, and the register of members if they are such. `signals` is a signalfd for
  /// the signals that launch() handles.
  LaunchAttempt(const std::vector<std::string>& command, const LaunchOptions& options,
                const std::vector<LaunchTask>& tasks, int signals, OutputMultiplexer& output);

  /// Returns once all have ended and their output was read.
  void watch();
  /// Returns the signal that asked to end the run; 0: none.
  int stopped_by() const { return stopped_by_; }
  /// Returns the waitpid() status of the task that failed first; 0: none failed.
  int first_status() const;
  /// Returns why the attempt failed, such as "rank 2 failed first: killed by signal 9 (SIGKILL),
  /// after 12.3 s".
  std::string summary() const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Member {
    LaunchTask task;
    int number = 0;
    std::optional<ChildProcess> process = {};
    /// when a failed task is restarted or dropped, unless the attempt ends earlier
    std::optional<Time> decision_time = {};
  };

  void open_register();
  void start(Member& member);
  /// Whether there is no reason yet to end the attempt.
  bool should_continue() const { return stopped_by_ == 0 && first_ == nullptr && !over_; }
  bool all_ended() const;
  /// Waits for signals or output, at most for a short time.
  void wait();
  void take_signals();
  void stop(int signal);
  /// Reads the task's output so far. Once it has `ended`, reads everything without waiting for the
  /// end of the streams, which other processes may hold open.
  void take_output(Member& member, bool ended);
  void reap();
  void handle_end(Member& member);
  void handle_member_end(Member& member);
  /// Lets the register work, and ends the attempt when the elastic run is over.
  void serve_register();
  /// Ends an elastic run that cannot reach its minimum of processes any more.
  void give_up(const Member& last);
  void report_failure(const Member& member);
  /// Whether another task of the same type has not failed, or will be restarted.
  bool has_working_peer(const Member& member) const;
  bool will_restart(const Member& member) const;
  /// Restarts failed tasks that are due, or drops them.
  void restart_or_drop();
  /// Sends SIGTERM, later SIGKILL, to processes that do not exit after the end.
  void escalate();
  void signal_all(int signal);
  /// Returns false if no task of this type is running.
  bool signal_type(const std::string& type, int signal);
  std::string describe(const Member& member) const;

  std::vector<std::string> command_;
  LaunchOptions options_;
  int signals_;
  OutputMultiplexer& output_;
  Time start_;
  std::vector<Member> members_;
  std::optional<RegisterServer> register_;  ///< in an elastic run
  const Member* first_ = nullptr;           ///< the task that failed first
  bool over_ = false;                ///< whether the chief has exited with 0, or the register ended
  bool failed_ = false;              ///< whether the register ended as too few members came
  std::optional<Time> next_signal_;  ///< when escalate() sends the next signal
  int signals_sent_ = 0;
  int stopped_by_ = 0;
};

}  // namespace tessera::detail
