#pragma once

#include <rpc/parameter_server.grpc.pb.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/parameter_server/job/watchdog.hpp>

namespace tessera::detail {

/// State of the job as received by a task.
struct JobStatus {
  std::string job;      ///< empty: no coordinator has connected yet
  std::string program;  ///< the coordinator's JobProgram as text; empty: not known yet
  int phase = 0;        ///< number of fits that have begun
  std::vector<std::string> results = {};  ///< results of the fits that are over
  bool over = false;                      ///< whether the coordinator has ended the job
  bool lost = false;                      ///< whether the coordinator was lost before that
  std::string failure = {};               ///< reason for `over` or `lost`
};

/// A task's side of the heartbeat call Task.Attend, of which there is one for the whole job.
class HeartbeatService final : public rpc::Task::Service {
 public:
  /// `timeout`: deadline for the coordinator's next heartbeat. `on_change` is called on other
  /// threads.
  HeartbeatService(std::chrono::milliseconds timeout, std::function<void()> on_change);

  grpc::Status Attend(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<rpc::TaskHeartbeat, rpc::CoordinatorHeartbeat>* stream) override;

  /// Returns a number that grows with every change of status().
  int64_t version() const { return version_; }
  JobStatus status() const;
  bool is_job(const std::string& job) const;
  /// Whether the job is over or its coordinator lost.
  bool ended() const { return ended_; }

  /// Sets the fit that the program works for (0: all); nullopt: none.
  void set_serving(std::optional<int> phase);
  /// Tells a connected coordinator why this task leaves, and ends the connection.
  void leave(const std::string& failure, bool other_program);

 private:
  using Stream = grpc::ServerReaderWriter<rpc::TaskHeartbeat, rpc::CoordinatorHeartbeat>;
  /// Reads the first heartbeat. Returns false if it misses its deadline, or if the call was
  /// cancelled because too many others wait as well.
  bool read_first(grpc::ServerContext& context, Stream& stream,
                  rpc::CoordinatorHeartbeat& heartbeat);
  grpc::Status begin(const rpc::CoordinatorHeartbeat& heartbeat);
  grpc::Status exchange_heartbeats(rpc::CoordinatorHeartbeat& heartbeat, Stream& stream,
                                   Watchdog::Call& call);
  bool receive(const rpc::CoordinatorHeartbeat& heartbeat);
  rpc::TaskHeartbeat answer() const;
  void end(const std::string& failure);
  void publish();

  const std::chrono::milliseconds timeout_;
  const std::function<void()> on_change_;
  std::atomic<int64_t> version_{0};
  std::atomic<bool> ended_{false};

  /// Calls without a first heartbeat, oldest first; each holds a thread.
  std::mutex pending_calls_mutex_;
  std::list<grpc::ServerContext*> pending_calls_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  JobStatus status_;
  std::optional<int> serving_;
  bool connected_ = false;
  bool leaving_ = false;
  bool other_program_ = false;
  std::string leave_reason_;
  /// Last member, so that its thread ends first.
  Watchdog watch_;
};

}  // namespace tessera::detail
