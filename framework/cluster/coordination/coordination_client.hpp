#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/coordination_server.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

namespace tessera::detail {

/// Every rank's side of the control plane: a connection to rank 0 and the thread that serves it. On
/// rank 0 it also owns the server.
class CoordinationClient : public Coordination {
 public:
  explicit CoordinationClient(const CoordinationOptions& options);
  ~CoordinationClient() override;
  CoordinationClient(const CoordinationClient&) = delete;
  CoordinationClient& operator=(const CoordinationClient&) = delete;

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  const std::vector<Peer>& peers() const override { return peers_; }
  std::vector<std::string> gather(const std::string& key, const std::string& text) override;
  void check(const CallRecord& call) override;
  void set_calls(std::function<std::vector<CallRecord>()> calls) override;
  void set_on_end(std::function<void(const std::string& reason)> on_end) override;
  std::string reason(std::chrono::milliseconds patience) override;
  void abort(const std::string& reason) override;
  void report_failure(const std::string& what) override;
  void leave() override;
  void give_up(const std::string& reason) override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase { joining, running, leaving, left, ended };

  /// A blocked call of gather() or check().
  struct Waiter {
    std::vector<std::string> texts;  ///< by rank
    size_t count = 0;                ///< number of texts received
    bool done = false;
  };

  void run();
  void serve();
  /// Ends the run for this rank since its service thread cannot go on.
  void fail_here(const char* what) noexcept;
  void wait(Time until);
  void handle_all();
  void handle(const Frame& frame);
  void handle_text(const Frame& frame);
  void welcome(const Frame& frame);
  void send_heartbeat();
  void send_goodbye();
  void call_on_end();
  /// Ends the run for a reason that this rank detected by itself.
  void end_here(const std::string& reason);
  void end(const std::string& reason);
  void close(Phase phase);
  std::vector<CallRecord> last_calls();
  Peer own_peer() const;
  Peer hub_peer() const;

  std::vector<std::string> exchange(FrameType type, const std::string& key,
                                    const std::string& body);
  void send(FrameType type, const std::string& body);
  bool over() const { return phase_ == Phase::left || phase_ == Phase::ended; }
  [[noreturn]] void fail_over() const;

  CoordinationOptions options_;
  /// The server, on rank 0. Destroyed last, as it waits for the connection to close.
  std::unique_ptr<CoordinationServer> hub_;
  Waker waker_;
  std::vector<Peer> peers_;  ///< constant once the run is joined

  /// Guards the members down to the next mutex; for the socket only sending and closing.
  std::mutex mutex_;
  std::condition_variable changed_;
  FrameSocket socket_;
  Phase phase_ = Phase::joining;
  std::string reason_;
  std::map<std::string, std::deque<std::shared_ptr<Waiter>>> waiters_;
  bool stop_ = false;
  std::optional<std::string> given_up_;  ///< reason of give_up()

  std::mutex callbacks_mutex_;
  std::function<std::vector<CallRecord>()> calls_;
  std::function<void(const std::string&)> on_end_;

  Time last_received_;  ///< last message of rank 0; this and the next member: service thread only
  bool goodbye_sent_ = false;
  std::thread thread_;
};

}  // namespace tessera::detail
