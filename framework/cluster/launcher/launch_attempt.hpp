#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/launcher/child_process.hpp>
#include <tessera/framework/cluster/launcher/launch_task.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>
#include <tessera/framework/cluster/launcher/output_multiplexer.hpp>

namespace tessera::detail {

/// One start of all processes, watched to their end.
class LaunchAttempt {
 public:
  /// Starts them. `signals` is a signalfd of the signals that launch() handles.
  LaunchAttempt(const std::vector<std::string>& command, const LaunchOptions& options,
                const std::vector<LaunchTask>& tasks, int signals, OutputMultiplexer& output);

  /// Returns when all have ended and their output was taken.
  void watch();
  /// The signal that was to end the run; 0: none.
  int stopped_by() const { return stopped_by_; }
  /// The status of the task that failed first; 0: none failed.
  int first_status() const;
  /// "rank 2 failed first: killed by signal 9 (SIGKILL), after 12.3 s"
  std::string summary() const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Member {
    LaunchTask task;
    int number = 0;
    std::optional<ChildProcess> process = {};
    /// When one that failed is started again or given up, unless the round ends before.
    std::optional<Time> settle = {};
  };

  void start(Member& member);
  /// Whether nothing says that it should end.
  bool goes_on() const { return stopped_by_ == 0 && first_ == nullptr && !over_; }
  bool all_ended() const;
  /// Waits for signals, output, or the time at which more is to be done.
  void wait();
  void take_signals();
  void stop(int signal);
  /// What it wrote so far, all of it once it has `ended`: others may hold its streams open.
  void take_output(Member& member, bool ended);
  void reap();
  void note_end(Member& member);
  void report_failure(const Member& member);
  /// Whether there is a worker beside this one that has not failed.
  bool others_work(const Member& member) const;
  bool starts_again(const Member& member) const;
  /// Starts those that failed again, or goes on without them.
  void restart_or_drop();
  /// Ends what does not leave.
  void escalate();
  void signal_all(int signal);
  /// False if no task of this type is left.
  bool signal_type(const std::string& type, int signal);
  std::string describe(const Member& member) const;

  std::vector<std::string> command_;
  LaunchOptions options_;
  int signals_;
  OutputMultiplexer& output_;
  Time start_;
  std::vector<Member> members_;
  const Member* first_ = nullptr;   ///< that failed
  bool over_ = false;               ///< whether the chief said that all is done
  std::optional<Time> next_press_;  ///< when processes that do not leave are told to
  int presses_ = 0;
  int stopped_by_ = 0;
};

}  // namespace tessera::detail
