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

/// A message of a neighbour's, in the hands of its owner and of a queue.
struct Post {
  uint64_t tag = 0;
  size_t bytes = 0;
  std::byte* memory = nullptr;
  Reader reader = nullptr;
  bool read_now = false;  ///< its owner waits, so that `reader` may be called
  bool headed = false;    ///< the header was sent
  size_t moved = 0;
  std::exception_ptr error = {};  ///< what `reader` threw, for its owner; written before `done`
  std::atomic<bool> done{false};
};
using PostPtr = std::shared_ptr<Post>;

/// Another rank of this host, which shares two rings with this one. For one thread at a time, but
/// leave() and dead().
class ShmPeer {
 public:
  /// `segment` is that rank's, of which this one, `here`, writes a ring.
  ShmPeer(pid_t process, std::unique_ptr<ShmSegment> segment, SharedRing in, int here)
      : process_(process), segment_(std::move(segment)), in_(in), out_(segment_->ring(here)) {}

  void add_send(const PostPtr& post) { sends_.push_back(post); }
  void add_recv(const PostPtr& post) { recvs_.push_back(post); }
  /// Forgets a message; false if a part of it has moved, after which nothing moves any more.
  bool drop(const PostPtr& post);
  bool sends() const { return !sends_.empty(); }
  /// Moves what can be moved; whether a message was completed.
  bool move();
  /// Tells it that nothing more comes.
  void leave() const;
  /// Whether nothing more comes from it.
  bool gone() const { return in_.closed() && in_.content().empty(); }
  /// Whether its process has ended; one that was not waited for has not.
  bool dead() const;

 private:
  bool push(Post& post);
  bool pull();
  static void read(Post& post, std::span<const std::byte> piece);
  bool begin_message();

  pid_t process_;
  std::unique_ptr<ShmSegment> segment_;
  SharedRing in_, out_;
  std::deque<PostPtr> sends_, recvs_;
  PostPtr current_;  ///< the one of recvs_ that is next in the ring
  bool broken_ = false;
};

}  // namespace tessera::detail
