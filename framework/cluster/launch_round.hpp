#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/child_process.hpp>
#include <tessera/framework/cluster/launcher.hpp>
#include <tessera/framework/cluster/line_output.hpp>

namespace tessera {

/// One start of all processes, watched to their end.
class LaunchRound {
 public:
  /// Starts them, with the variables of their ranks added to `environment`. `signals` is a signalfd
  /// of the signals that launch() handles.
  LaunchRound(const std::vector<std::string>& command, const LaunchOptions& options,
              const std::map<std::string, std::string>& environment, int signals,
              LineOutput& output);

  /// Returns when all have ended and their output was taken.
  void watch();
  /// The signal that was to end the run; 0: none.
  int stopped_by() const { return stopped_by_; }
  /// The status of the rank that failed first; 0: none failed.
  int first_status() const;
  /// "rank 2 failed first: killed by signal 9 (SIGKILL), after 12.3 s"
  std::string summary() const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  bool all_ended() const;
  /// Waits for signals, output, or the time at which more is to be done.
  void wait();
  void take_signals();
  void stop(int signal);
  /// What it wrote so far, all of it once it has `ended`: others may hold its streams open.
  void take_output(ChildProcess& child, bool ended);
  void reap();
  void note_end(const ChildProcess& child);
  /// Ends what does not leave.
  void press();
  void signal_all(int signal);
  std::string describe(const ChildProcess& child) const;

  LaunchOptions options_;
  int signals_;
  LineOutput& output_;
  Time start_;
  std::vector<ChildProcess> children_;
  const ChildProcess* first_ = nullptr;  ///< that failed
  std::optional<Time> next_press_;       ///< when processes that do not leave are told to
  int presses_ = 0;
  int stopped_by_ = 0;
};

}  // namespace tessera
