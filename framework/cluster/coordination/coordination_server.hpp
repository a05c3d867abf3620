#pragma once

#include <atomic>
#include <exception>
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
#include <tessera/framework/cluster/coordination/peer_handshake.hpp>

namespace tessera::detail {

/// Rank 0's side of the control plane: one thread that owns all connections, admits ranks, forwards
/// their texts and ends the run. It shares no state with other threads: rank 0 itself uses a
/// connection, too. The thread ends once that connection is closed or all ranks have left.
class CoordinationServer {
 public:
  /// Listens unless rank 0 is alone. Throws CommError naming the port.
  explicit CoordinationServer(const CoordinationOptions& options);
  /// Waits for the thread.
  ~CoordinationServer();
  CoordinationServer(const CoordinationServer&) = delete;
  CoordinationServer& operator=(const CoordinationServer&) = delete;

  /// Waits until the others have read the end of the run: at most a second once it is over, and
  /// half a second more if the run ends because rank 0's own connection closed.
  void wait_for_end();

  /// Returns rank 0's end of its own connection; to be called once.
  FileDescriptor take_own_end() { return std::move(own_end_); }

  /// Throws what ended the thread, if an exception did.
  void rethrow_failure() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase { waiting, running, asking, over };

  struct Connection {
    FrameSocket socket;
    PeerHandshake handshake;
    int rank = -1;         ///< -1 before the peer is admitted
    bool ignored = false;  ///< whether its input is dropped: it was refused, or a frame was changed
    /// by when the peer must be admitted or, after a refusal, close the connection
    Time deadline = {};
    bool closed = false;
  };

  void run();
  void wait();
  void accept_all();
  void serve(Connection& connection);
  void handle(Connection& connection, const Frame& frame);
  void greet(Connection& connection, const Frame& frame);
  void admit(Connection& connection, const HandshakeReply& reply);
  void close(Connection& connection);
  void remove_closed();

  void tick();
  void tick_waiting();
  void start();
  Time wake_time() const;

  void leave(int rank, const std::optional<CallRecord>& last);
  void answer(const std::optional<PendingGather>& complete);
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
  std::optional<LivenessMonitor> monitor_;  ///< set once all ranks are present
  Phase phase_ = Phase::waiting;
  std::string reason_;
  std::set<int> answered_;

  Time now_;
  Time begin_;
  Time next_heartbeat_;
  Time next_line_;
  Time next_warning_;  ///< rate limit of warnings about refused peers
  Time next_accept_;
  Time deadline_ = {};                    ///< end of phase asking or over
  std::exception_ptr failure_;            ///< set before has_failed_
  std::atomic<bool> has_failed_ = false;  ///< whether an exception ended the thread
  std::mutex end_mutex_;                  ///< guards the thread's handle
  std::thread thread_;
};

}  // namespace tessera::detail
