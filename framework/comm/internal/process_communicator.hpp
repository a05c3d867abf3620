#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/comm/internal/engine.hpp>
#include <tessera/framework/comm/internal/flight_recorder.hpp>

namespace tessera::detail {

/// The connections of a generation of an elastic run ended, since processes are gone or others
/// join: the members of the next one meet. No error of this process.
class MembershipChanged final : public CommError {
  using CommError::CommError;
};

struct ProcessCommunicatorOptions {
  /// Whether ranks compare every collective before they run it, instead of only in the first 20
  /// steps and in steps where the global batch's shape changes.
  bool always_check = false;
  /// How long a process may stay outside of collectives after the run is over before it is ended
  /// with exit code 1; 0: without limit.
  std::chrono::milliseconds leave_after = std::chrono::seconds(4);
  /// Whether the end of the run that the connections belong to is that of a generation of an
  /// elastic run: errors are then MembershipChanged, and nothing ends the process.
  bool elastic = false;
};

/// The communicator between processes: an engine carries the tensors; the coordination compares
/// calls and knows which ranks are alive. Every error names the rank at fault and the position of
/// this rank: "[all_reduce #118 of hidden/kernel, … on batch, step 7]".
class ProcessCommunicator final : public Communicator {
 public:
  ProcessCommunicator(std::shared_ptr<Coordination> coordination, std::shared_ptr<Engine> engine,
                      const ProcessCommunicatorOptions& options = {});
  /// Leaves the run.
  ~ProcessCommunicator() override;

  std::string name() const override { return engine_->name(); }
  int rank() const override { return engine_->rank(); }
  int size() const override { return engine_->size(); }
  /// Whether this is a communicator of an elastic run.
  bool is_elastic() const { return options_.elastic; }
  /// Ends the connections at once: collectives in progress throw, and the others see that this
  /// process is gone. Thread-safe.
  void give_up(const std::string& reason) { coordination()->give_up(reason); }
  /// Leaves the others of a generation, all of which do so between two collectives. Throws
  /// CommError if one is gone.
  void part();
  /// Ends the connections and waits until their port is free.
  void disconnect();
  /// Replaces the connections by those of the next generation, in which calls and steps are
  /// numbered anew.
  void reconnect(std::shared_ptr<Coordination> coordination, std::shared_ptr<Engine> engine);
  /// Sets whether this process has joined others that train, which would not answer: until it is in
  /// the fit, too, its calls throw StateError.
  void set_joining(bool joining) { joining_ = joining; }
  /// Returns how often the connections were replaced.
  int64_t reconnections() const { return reconnections_; }
  /// Returns gather() by the present connections only: once they are replaced, it throws.
  std::function<std::vector<std::string>(const std::string& key, const std::string& text)>
  gather_by_present_connections();
  /// Tells the others that this process leaves the run; later collectives throw.
  void leave();

  void begin(const CollectiveCall& call) override;
  void begin_step(int64_t step, uint64_t signature) override;
  uint64_t calls_hash() const override { return calls_->hash(); }
  std::vector<std::string> gather(const std::string& key, const std::string& text) override;
  void report_failure(const std::string& what) override { coordination()->report_failure(what); }

  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                     at::Tensor& out) override;
  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override;
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override;
  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override;
  WorkPtr exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                   const std::vector<Message>& recvs) override;
  void abort(const std::string& reason) override { coordination()->abort(reason); }

 private:
  class NamedWork;

  /// Returns the present coordination, for threads other than that of collectives.
  std::shared_ptr<Coordination> coordination() const {
    const std::lock_guard<std::mutex> lock(connections_mutex_);
    return coordination_;
  }
  std::vector<std::string> gather_by(Coordination& coordination, const std::string& key,
                                     const std::string& text);
  /// Has the coordination tell of the end of the run.
  void attach();

  /// Runs an operation of the engine for the current call; name and bytes are for the profile.
  template <class Run>
  WorkPtr run(std::string_view name, int64_t bytes, const Run& run);
  /// Does the same for the call with this FlightRecorder::Added::count.
  template <class Run>
  WorkPtr run_call(uint64_t call, std::string_view name, const Run& run);
  /// Records that the thread of collectives is about to throw why the run is over.
  void notice();
  /// Throws the coordination's reason for the end of the run, or `error` if it has none.
  [[noreturn]] void fail(uint64_t call, const std::string& error);
  [[noreturn]] void raise(const std::string& where, const std::string& reason) const;
  void check_alive();
  void on_end(const std::string& reason);
  /// Ends the process if notice() is not called in time after the run is over.
  void watch();
  std::string where(uint64_t call) const;

  mutable std::mutex connections_mutex_;  ///< guards the pointer below
  std::shared_ptr<Coordination> coordination_;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<FlightRecorder> calls_ = std::make_shared<FlightRecorder>();
  ProcessCommunicatorOptions options_;
  int64_t step_ = -1;
  uint64_t signature_ = 0;
  bool checks_ = true;
  int64_t reconnections_ = 0;
  std::atomic<bool> joining_{false};
  /// The thread that calls collectives.
  std::atomic<std::thread::id> caller_{};

  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string reason_;
  bool noticed_ = false;
  bool left_ = false;
  std::thread watcher_;
};

}  // namespace tessera::detail
