#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>

#include <tessera/framework/comm/cpu/shm_segment.hpp>
#include <tessera/framework/comm/cpu/transport.hpp>

namespace tessera::detail {

/// A message to or from a neighbour, shared by its owner and a queue.
struct Post {
  uint64_t tag = 0;
  size_t bytes = 0;
  std::byte* memory = nullptr;
  Reader reader = nullptr;
  bool read_now = false;     ///< whether its owner waits, so that `reader` may be called
  bool header_sent = false;  ///< whether the header was sent
  size_t moved = 0;
  std::exception_ptr error = {};  ///< exception of `reader`, for the owner; written before `done`
  std::atomic<bool> done{false};
};
using PostPtr = std::shared_ptr<Post>;

/// Another rank of this host, which shares two rings with this one. Not thread-safe, except leave()
/// and dead().
class ShmPeer {
 public:
  /// `segment` is the peer's; this rank writes to its ring number `out`.
  ShmPeer(pid_t process, std::shared_ptr<ShmSegment> segment, SharedRing in, int out)
      : process_(process), segment_(std::move(segment)), in_(in), out_(segment_->ring(out)) {}

  void add_send(const PostPtr& post) { sends_.push_back(post); }
  void add_recv(const PostPtr& post) { recvs_.push_back(post); }
  /// Drops a message. Returns false if it was partly transferred; nothing is transferred from then
  /// on.
  bool drop(const PostPtr& post);
  /// Whether messages are waiting to be sent.
  bool sends() const { return !sends_.empty(); }
  /// Transfers what it can without blocking. Returns whether a message was completed.
  bool move();
  /// Tells the peer that this rank sends nothing more.
  void leave() const;
  /// Whether the peer has left and all its messages were read.
  bool gone() const { return in_.closed() && in_.content().empty(); }
  /// Whether the peer's process has ended; a zombie has not.
  bool dead() const;

 private:
  bool push(Post& post);
  bool pull();
  static void read(Post& post, std::span<const std::byte> piece);
  bool begin_message();

  pid_t process_;
  std::shared_ptr<ShmSegment> segment_;
  SharedRing in_, out_;
  std::deque<PostPtr> sends_, recvs_;
  PostPtr current_;  ///< the receive whose message is next in the ring
  bool broken_ = false;
};

}  // namespace tessera::detail
