#include <tessera/framework/comm/cpu/shm_peer.hpp>

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera::detail {
namespace {

/// Bytes copied before the other side is notified, so that both sides work in parallel.
constexpr size_t piece_bytes = size_t{64} << 10;

size_t padded(size_t bytes) {
  return (bytes + SharedRing::unit - 1) / SharedRing::unit * SharedRing::unit;
}

/// Precedes each message in the ring.
struct Header {
  uint64_t tag;
  uint64_t bytes;
};

}  // namespace

bool ShmPeer::drop(const PostPtr& post) {
  const bool intact = post->done || (post->moved == 0 && !post->header_sent && post != current_);
  broken_ = broken_ || !intact;
  std::erase(sends_, post);
  std::erase(recvs_, post);
  return intact;
}

void ShmPeer::leave() const {
  out_.close();
  segment_->ring_bell();
}

bool ShmPeer::dead() const { return kill(process_, 0) == -1 && errno == ESRCH; }

bool ShmPeer::move() {
  if (broken_) return false;
  bool completed = false;
  while (!sends_.empty() && push(*sends_.front())) {
    sends_.front()->done = true;
    sends_.pop_front();
    completed = true;
  }
  while (pull()) completed = true;
  return completed;
}

/// Writes a message to the ring. Returns whether all of it is written.
bool ShmPeer::push(Post& post) {
  while (!post.header_sent || post.moved < post.bytes) {
    const std::span<std::byte> room = out_.room();
    if (room.empty()) return false;
    size_t count = SharedRing::unit;
    if (post.header_sent) {
      count = std::min({room.size(), post.bytes - post.moved, piece_bytes});
      std::memcpy(room.data(), post.memory + post.moved, count);
      post.moved += count;
    } else {
      const Header header{post.tag, post.bytes};
      std::memcpy(room.data(), &header, sizeof(header));
      post.header_sent = true;
    }
    out_.publish(padded(count));
    segment_->ring_bell();
  }
  return true;
}

/// Runs the reader, on any thread that transfers messages. An exception is kept for the message's
/// owner, and the rest of the message is skipped, so that later messages still arrive.
void ShmPeer::read(Post& post, std::span<const std::byte> piece) {
  if (post.error) return;
  try {
    post.reader(piece.data(), post.moved, piece.size());
  } catch (...) {
    post.error = std::current_exception();
  }
}

/// Reads the next message from the ring. Returns whether it was received completely.
bool ShmPeer::pull() {
  if (!current_ && !begin_message()) return false;
  Post& post = *current_;
  if (post.reader && !post.read_now) return false;
  while (post.moved < post.bytes) {
    const std::span<const std::byte> content = in_.content();
    if (content.empty()) return false;
    const size_t count = std::min({content.size(), post.bytes - post.moved, piece_bytes});
    if (post.reader) {
      read(post, content.first(count));
    } else {
      std::memcpy(post.memory + post.moved, content.data(), count);
    }
    post.moved += count;
    in_.release(padded(count));
    segment_->ring_bell();
  }
  post.done = true;
  std::erase(recvs_, current_);
  current_ = nullptr;
  return true;
}

bool ShmPeer::begin_message() {
  const std::span<const std::byte> content = in_.content();
  if (content.empty()) return false;
  Header header;
  std::memcpy(&header, content.data(), sizeof(header));
  for (const PostPtr& post : recvs_) {
    if (post->tag != header.tag || post->bytes != header.bytes) continue;
    current_ = post;
    in_.release(SharedRing::unit);
    return true;
  }
  return false;
}

}  // namespace tessera::detail
