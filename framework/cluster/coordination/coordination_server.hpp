#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/coordination/liveness_monitor.hpp>

namespace tessera::detail {

/// Rank 0's side of the control plane: one thread that owns all connections, lets ranks in, passes
/// their texts on and ends the run. It shares nothing with other threads: rank 0 itself talks to it
/// over a connection, too, and it ends by itself once that connection is closed or everybody has
/// left.
class CoordinationServer {
 public:
  /// Listens unless rank 0 is alone. Throws CommError naming the port.
  explicit CoordinationServer(const CoordinationOptions& options);
  /// Waits for the thread.
  ~CoordinationServer();
  CoordinationServer(const CoordinationServer&) = delete;
  CoordinationServer& operator=(const CoordinationServer&) = delete;

  /// Waits until the others have read the end of the run: for a second at most once it is over, for
  /// half a second more where it is the close of rank 0's end of its connection that ends it.
  void wait_for_end();

  /// Rank 0's end of its connection, once.
  FileDescriptor take_own_end() { return std::move(own_end_); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase { waiting, running, asking, over };

  struct Connection {
    FrameSocket socket;
    bool own = false;  ///< rank 0's
    int rank = -1;     ///< none before the hello
    bool refused = false;
    /// The hello of one that has to prove itself, and by what.
    std::string hello = {};
    std::string nonce = {};
    /// By when it must say who it is and prove it or, after a refusal, the other side close.
    Time deadline = {};
    bool gone = false;
  };

  void run();
  void wait();
  void accept_all();
  void serve(Connection& connection);
  void handle(Connection& connection, const Frame& frame);
  void greet(Connection& connection, const Frame& frame);
  void judge_proof(Connection& connection, const Frame& frame);
  void admit(Connection& connection, Hello hello, const std::string& proof);
  void refuse(Connection& connection, const std::string& text);
  void close(Connection& connection);
  void remove_closed();

  void tick();
  void tick_waiting();
  void start();
  Time wake_time() const;

  void leave(int rank, const std::optional<CallRecord>& last);
  void answer(const std::optional<Round>& complete);
  void end(const std::string& reason);
  void end_if_answered();
  void finish(FrameType type, const std::string& body);
  bool finished() const;

  void broadcast(FrameType type, std::string_view body = {});
  std::vector<int> missing() const;
  void say(const std::string& line) const;

  CoordinationOptions options_;
  std::chrono::milliseconds interval_;
  FileDescriptor own_end_;
  FileDescriptor listener_;
  std::list<Connection> connections_;
  std::vector<std::optional<Peer>> present_;
  std::optional<LivenessMonitor> judge_;  ///< once all are there
  Phase phase_ = Phase::waiting;
  std::string reason_;
  std::set<int> answered_;

  Time now_;
  Time begin_;
  Time next_beat_;
  Time next_line_;
  Time next_warning_;  ///< when one may be said of whoever knows another secret
  Time next_accept_;
  Time deadline_ = {};    ///< when the phase ends, asking or over
  std::mutex end_mutex_;  ///< guards the thread's handle
  std::thread thread_;
};

}  // namespace tessera::detail
