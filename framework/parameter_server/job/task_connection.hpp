#pragma once

#include <rpc/parameter_server.grpc.pb.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include <grpcpp/channel.h>

#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/parameter_server/job/watchdog.hpp>

namespace tessera::detail {

class CoordinatorRuntime;

/// State of a task as seen by its coordinator.
struct TaskState {
  bool connected = false;  ///< whether it answers heartbeats
  bool serving = false;    ///< whether it works for the coordinator
  int phase = 0;           ///< the fit that it works for; 0: all
};

/// The coordinator's side of the heartbeat call Task.Attend to one task: a thread that makes the
/// call, again whenever the task was lost, until the job ends.
class TaskConnection {
 public:
  /// `on_change` is called on that thread whenever state() has changed.
  TaskConnection(CoordinatorRuntime& coordinator, TaskType type, int index, std::string name,
                 const std::string& address, const std::string& secret,
                 std::function<void()> on_change = {});
  void start();
  /// Cancels the call and joins the thread.
  void stop();
  TaskType type() const { return type_; }
  int index() const { return index_; }
  /// Returns "worker 1 (127.0.0.1:4001)".
  const std::string& name() const { return name_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  TaskState state() const;
  /// Whether the task was notified that the job is over.
  bool notified_of_end() const { return notified_of_end_; }

 private:
  using Stream = grpc::ClientReaderWriter<rpc::CoordinatorHeartbeat, rpc::TaskHeartbeat>;
  void run(const std::stop_token& stop);
  void attend(const std::stop_token& stop);
  std::string exchange_heartbeats(Stream& stream, Watchdog::Call& call,
                                  const std::stop_token& stop);
  bool set_state(const TaskState& state);
  void report_other_secret();

  CoordinatorRuntime& coordinator_;
  const TaskType type_;
  const int index_;
  const std::string name_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<rpc::Task::Stub> stub_;
  const std::function<void()> on_change_;
  mutable std::mutex mutex_;
  TaskState state_;
  std::atomic<bool> notified_of_end_{false};
  bool reported_other_secret_ = false;
  std::jthread thread_;
};

}  // namespace tessera::detail
