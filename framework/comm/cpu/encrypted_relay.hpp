#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/comm/cpu/peer_sockets.hpp>

namespace tessera::detail {

/// Encrypts the connections that are given to Gloo, which writes to its sockets by itself: each of
/// them ends here, inside the process, and one thread passes its bytes on to the peer as encrypted
/// and authenticated records. Thread-safe.
class EncryptedRelay {
 public:
  /// Takes the sockets of `peers` (by rank; none for this rank) and leaves the ends for Gloo there.
  /// `on_changed` is called on the relay's thread for a peer whose record was not received as it
  /// was sent, before that connection is closed. Throws CommError without descriptors.
  EncryptedRelay(std::vector<PeerConnection>& peers, std::function<void(int peer)> on_changed);
  /// Passes on what was sent before Gloo closed its ends; gives up after two seconds.
  ~EncryptedRelay();
  EncryptedRelay(const EncryptedRelay&) = delete;
  EncryptedRelay& operator=(const EncryptedRelay&) = delete;

  /// Returns once the system has everything that was written so far, after at most five seconds.
  void flush();
  /// Closes all connections at once, without waiting for it.
  void close();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Pair;

  void run();
  void serve();
  /// Answers the requests of other threads. Returns false once the relay is to end.
  bool take_requests();
  void wait(Time until);
  bool all_sent() const;
  void close_all();

  std::function<void(int peer)> on_changed_;
  std::vector<std::unique_ptr<Pair>> pairs_;  ///< the relay's thread only
  Waker waker_;

  std::mutex mutex_;  ///< guards the members down to the thread
  std::condition_variable changed_;
  bool flush_requested_ = false;
  bool close_requested_ = false;
  bool over_ = false;
  std::optional<Time> end_;  ///< when the thread ends at the latest
  std::thread thread_;
};

}  // namespace tessera::detail
