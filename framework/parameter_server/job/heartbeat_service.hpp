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

/// What a task has heard of the job.
struct JobNews {
  std::string job;      ///< empty: no coordinator has come yet
  std::string program;  ///< what coordinator and task must have alike; empty: not known yet
  int phase = 0;        ///< fits that have begun
  std::vector<std::string> results = {};  ///< what fits that are over gave
  bool over = false;                      ///< the coordinator has said so
  bool lost = false;                      ///< or is gone without
  std::string failure = {};               ///< why, of either
};

/// A task's side of the call by which the coordinator attends it: there is one for the whole job.
class HeartbeatService final : public rpc::Task::Service {
 public:
  /// `timeout`: silence after which the coordinator is lost. `on_news` is called on other threads.
  HeartbeatService(std::chrono::milliseconds timeout, std::function<void()> on_news);

  grpc::Status Attend(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<rpc::TaskBeat, rpc::CoordinatorBeat>* stream) override;

  /// Grows with all news.
  int64_t version() const { return version_; }
  JobNews news() const;
  bool is_job(const std::string& job) const;
  /// Whether the job is over or its coordinator lost.
  bool ended() const { return ended_; }

  /// The program works for fit number `phase` (0: all) from now on; nothing: it does not.
  void set_serving(std::optional<int> phase);
  /// Tells the coordinator why this task leaves, if it is attended, and attends it no more.
  void leave(const std::string& failure, bool other_program);

 private:
  using Stream = grpc::ServerReaderWriter<rpc::TaskBeat, rpc::CoordinatorBeat>;
  /// Reads the first beat; false if none comes soon, or if others make it give its thread back.
  bool read_first(grpc::ServerContext& context, Stream& stream, rpc::CoordinatorBeat& beat);
  grpc::Status begin(const rpc::CoordinatorBeat& beat);
  grpc::Status talk(rpc::CoordinatorBeat& beat, Stream& stream, Watchdog::Call& call);
  bool hear(const rpc::CoordinatorBeat& beat);
  rpc::TaskBeat answer() const;
  void end(const std::string& failure);
  void publish();

  const std::chrono::milliseconds timeout_;
  const std::function<void()> on_news_;
  std::atomic<int64_t> version_{0};
  std::atomic<bool> ended_{false};

  /// Calls that have said nothing yet, the oldest first: each holds a thread.
  std::mutex silent_mutex_;
  std::list<grpc::ServerContext*> silent_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  JobNews news_;
  std::optional<int> serving_;
  bool attended_ = false;
  bool leaving_ = false;
  bool other_program_ = false;
  std::string leave_reason_;
  /// Last: its thread ends first.
  Watchdog watch_;
};

}  // namespace tessera::detail
