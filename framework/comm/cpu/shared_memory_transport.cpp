#include <tessera/framework/comm/cpu/shared_memory_transport.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <random>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/cpu/shm_peer.hpp>
#include <tessera/framework/comm/cpu/shm_segment.hpp>

namespace tessera::detail {
namespace {

constexpr size_t unit = SharedRing::unit;
/// Size of all rings of a rank together.
constexpr size_t segment_bytes = size_t{2} << 20;
constexpr size_t min_ring_bytes = size_t{128} << 10;
/// Polls before a waiting thread sleeps: the other rank may need this processor.
constexpr int max_spins = 20;
constexpr std::chrono::milliseconds max_sleep{100};

size_t ring_bytes_for(int ranks) {
  const size_t share = segment_bytes / static_cast<size_t>(std::max(1, ranks - 1));
  return std::max(min_ring_bytes, share / unit * unit);
}

class SharedMemoryTransport final : public Transport {
 public:
  SharedMemoryTransport(int rank, std::unique_ptr<ShmSegment> segment,
                        std::vector<std::unique_ptr<ShmPeer>> neighbours,
                        std::unique_ptr<Transport> other)
      : rank_(rank),
        segment_(std::move(segment)),
        neighbours_(std::move(neighbours)),
        other_(std::move(other)) {}
  ~SharedMemoryTransport() override {
    for (const auto& neighbour : neighbours_) {
      if (neighbour) neighbour->leave();
    }
  }

  std::string name() const override { return other_ ? "shared memory and gloo" : "shared memory"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(neighbours_.size()); }

  TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override;
  TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override;
  TransferPtr recv(int from, uint64_t tag, size_t bytes, Reader reader) override;

  bool sends_in_background() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::none_of(neighbours_.begin(), neighbours_.end(),
                        [](const auto& neighbour) { return neighbour && neighbour->sends(); });
  }

  void flush() override {
    if (other_) other_->flush();
  }

  void abort(const std::string& reason) override {
    {
      const std::lock_guard<std::mutex> lock(reason_mutex_);
      if (reason_.empty()) reason_ = reason;
    }
    aborted_ = true;
    segment_->ring_bell();
    for (const auto& neighbour : neighbours_) {
      if (neighbour) neighbour->leave();
    }
    if (other_) other_->abort(reason);
  }

 private:
  class SharedTransfer;

  ShmPeer* neighbour(int peer) const { return neighbours_[static_cast<size_t>(peer)].get(); }
  TransferPtr post(int peer, const PostPtr& post, bool sends);
  bool drop(int peer, const PostPtr& post) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return neighbour(peer)->drop(post);
  }
  void wait(int peer, Post& post);
  void move_all();
  void check();
  [[noreturn]] void fail(int peer, const std::string& what);

  int rank_;
  std::unique_ptr<ShmSegment> segment_;
  std::vector<std::unique_ptr<ShmPeer>> neighbours_;  ///< by rank; null if no memory is shared
  std::unique_ptr<Transport> other_;
  mutable std::mutex mutex_;
  std::mutex reason_mutex_;
  std::string reason_;
  std::atomic<bool> aborted_{false};
  std::atomic<int> waiters_{0};
};

class SharedMemoryTransport::SharedTransfer final : public Transfer {
 public:
  SharedTransfer(SharedMemoryTransport& transport, int peer, PostPtr post)
      : transport_(transport), peer_(peer), post_(std::move(post)) {}
  ~SharedTransfer() override {
    if (!post_->done && !transport_.drop(peer_, post_)) transport_.abort("a message was cut off");
  }
  void wait() override { transport_.wait(peer_, *post_); }

 private:
  SharedMemoryTransport& transport_;
  int peer_;
  PostPtr post_;
};

TransferPtr SharedMemoryTransport::send(int to, uint64_t tag, const void* data, size_t bytes) {
  if (!neighbour(to)) return other_->send(to, tag, data, bytes);
  const auto message = std::make_shared<Post>();
  message->tag = tag;
  message->bytes = bytes;
  message->memory = static_cast<std::byte*>(const_cast<void*>(data));
  return post(to, message, true);
}

TransferPtr SharedMemoryTransport::recv(int from, uint64_t tag, void* data, size_t bytes) {
  if (!neighbour(from)) return other_->recv(from, tag, data, bytes);
  const auto message = std::make_shared<Post>();
  message->tag = tag;
  message->bytes = bytes;
  message->memory = static_cast<std::byte*>(data);
  return post(from, message, false);
}

TransferPtr SharedMemoryTransport::recv(int from, uint64_t tag, size_t bytes, Reader reader) {
  if (!neighbour(from)) return other_->recv(from, tag, bytes, std::move(reader));
  const auto message = std::make_shared<Post>();
  message->tag = tag;
  message->bytes = bytes;
  message->reader = std::move(reader);
  return post(from, message, false);
}

TransferPtr SharedMemoryTransport::post(int peer, const PostPtr& post, bool sends) {
  check();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sends) {
    neighbour(peer)->add_send(post);
    // A completed message may be one that another thread waits for.
    if (neighbour(peer)->move() && waiters_ > 0) segment_->ring_bell();
  } else {
    neighbour(peer)->add_recv(post);
  }
  return std::make_unique<SharedTransfer>(*this, peer, post);
}

void SharedMemoryTransport::move_all() {
  bool completed = false;
  for (const auto& neighbour : neighbours_) {
    if (neighbour) completed = neighbour->move() || completed;
  }
  // A completed message may be one that another thread waits for.
  if (completed && waiters_ > 1) segment_->ring_bell();
}

void SharedMemoryTransport::wait(int peer, Post& post) {
  struct Waiting {
    explicit Waiting(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Waiting() { --count_; }
    std::atomic<int>& count_;
  } waiting(waiters_);
  int spins = 0;
  while (true) {
    const uint32_t seen = segment_->bell();
    bool gone = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      post.read_now = true;
      check();
      move_all();
      gone = neighbour(peer)->gone();
    }
    if (post.done && post.error) std::rethrow_exception(post.error);
    if (post.done) return;
    check();
    if (gone) fail(peer, "it left");
    if (++spins < max_spins) {
      sched_yield();
      continue;
    }
    segment_->sleep(seen, max_sleep);
    if (segment_->bell() == seen && neighbour(peer)->dead()) fail(peer, "its process ended");
    spins = 0;
  }
}

void SharedMemoryTransport::check() {
  if (!aborted_) return;
  const std::lock_guard<std::mutex> lock(reason_mutex_);
  throw CommError("shared memory", "the transport was aborted", reason_, "");
}

void SharedMemoryTransport::fail(int peer, const std::string& what) {
  check();
  throw CommError("shared memory", str("the connection to rank ", peer, " stays open"), what, "");
}

/// The access to a rank's segment, as sent to the other ranks.
struct Offer {
  pid_t process = 0;
  int descriptor = -1;
  uint64_t cookie = 0;
};

std::string to_text(const Offer& offer) {
  return str(offer.process, " ", offer.descriptor, " ", offer.cookie);
}

Offer from_text(const std::string& text) {
  Offer offer;
  std::istringstream in(text);
  in >> offer.process >> offer.descriptor >> offer.cookie;
  return offer;
}

uint64_t random_cookie() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

/// Opens a rank's segment; returns null if it cannot be opened.
std::unique_ptr<ShmSegment> open_segment(const Offer& offer, int ranks) {
  if (offer.descriptor < 0) return nullptr;
  try {
    return std::make_unique<ShmSegment>(offer.process, offer.descriptor, ranks,
                                        ring_bytes_for(ranks), offer.cookie);
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<Transport> shared_memory_transport(const SharedMemoryOptions& options) {
  const size_t size = static_cast<size_t>(options.size);
  const size_t me = static_cast<size_t>(options.rank);
  Offer mine{getpid(), -1, random_cookie()};
  std::unique_ptr<ShmSegment> segment;
  try {
    segment = std::make_unique<ShmSegment>(options.size, ring_bytes_for(options.size), mine.cookie);
    mine.descriptor = segment->descriptor();
  } catch (const std::exception&) {
    // All messages of this rank then use the other transport.
  }
  const std::vector<std::string> offers = options.gather(to_text(mine));
  std::vector<std::unique_ptr<ShmSegment>> theirs(size);
  std::string reached(size, '0');
  for (size_t r = 0; r < size && segment; ++r) {
    if (r == me) continue;
    theirs[r] = open_segment(from_text(offers.at(r)), options.size);
    if (theirs[r]) reached[r] = '1';
  }
  const std::vector<std::string> all = options.gather(reached);
  std::vector<std::unique_ptr<ShmPeer>> neighbours(size);
  bool others = false;
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = 0; b < size; ++b) {
      const bool both = all.at(a).at(b) == '1' && all.at(b).at(a) == '1';
      others = others || (a != b && !both);
      if (a != me || !both) continue;
      neighbours[b] = std::make_unique<ShmPeer>(from_text(offers[b]).process, std::move(theirs[b]),
                                                segment->ring(static_cast<int>(b)), options.rank);
    }
  }
  if (segment) segment->close_descriptor();
  std::unique_ptr<Transport> other = others ? options.other() : nullptr;
  const bool alone = std::none_of(neighbours.begin(), neighbours.end(),
                                  [](const auto& neighbour) { return neighbour != nullptr; });
  if (alone && other) return other;
  return std::make_unique<SharedMemoryTransport>(options.rank, std::move(segment),
                                                 std::move(neighbours), std::move(other));
}

}  // namespace tessera::detail
