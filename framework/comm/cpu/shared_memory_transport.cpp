#include <tessera/framework/comm/cpu/shared_memory_transport.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
/// Messages of one lane never wait for those of another.
constexpr size_t lanes = 2;
/// Size of all rings of a rank and lane together.
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
  /// The peers of either lane, by rank; null if no memory is shared.
  using Peers = std::vector<std::unique_ptr<ShmPeer>>;

  SharedMemoryTransport(int rank, std::unique_ptr<ShmSegment> segment,
                        std::array<Peers, lanes> peers, std::unique_ptr<Transport> other)
      : rank_(rank),
        segment_(std::move(segment)),
        peers_(std::move(peers)),
        other_(std::move(other)),
        apart_(*this) {}
  ~SharedMemoryTransport() override { leave_all(); }

  std::string name() const override { return other_ ? "shared memory and gloo" : "shared memory"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_[0].size()); }

  TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override {
    return send(0, to, tag, data, bytes);
  }
  TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override {
    return recv(0, from, tag, data, bytes);
  }
  TransferPtr recv(int from, uint64_t tag, size_t bytes, Reader reader) override {
    return recv(0, from, tag, bytes, std::move(reader));
  }
  bool sends_in_background() const override { return sends_in_background(0); }
  Transport& apart() override { return apart_; }

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
    leave_all();
    if (other_) other_->abort(reason);
  }

 private:
  class SharedTransfer;

  /// The second lane: the same peers, through rings of its own.
  class Apart final : public Transport {
   public:
    explicit Apart(SharedMemoryTransport& both) : both_(both) {}
    std::string name() const override { return both_.name(); }
    int rank() const override { return both_.rank(); }
    int size() const override { return both_.size(); }
    TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override {
      return both_.send(1, to, tag, data, bytes);
    }
    TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override {
      return both_.recv(1, from, tag, data, bytes);
    }
    TransferPtr recv(int from, uint64_t tag, size_t bytes, Reader reader) override {
      return both_.recv(1, from, tag, bytes, std::move(reader));
    }
    bool sends_in_background() const override { return both_.sends_in_background(1); }
    void flush() override { both_.flush(); }
    void abort(const std::string& reason) override { both_.abort(reason); }

   private:
    SharedMemoryTransport& both_;
  };

  TransferPtr send(size_t lane, int to, uint64_t tag, const void* data, size_t bytes);
  TransferPtr recv(size_t lane, int from, uint64_t tag, void* data, size_t bytes);
  TransferPtr recv(size_t lane, int from, uint64_t tag, size_t bytes, Reader reader);
  bool sends_in_background(size_t lane) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::none_of(peers_[lane].begin(), peers_[lane].end(),
                        [](const auto& peer) { return peer && peer->sends(); });
  }
  void leave_all() {
    for (const Peers& peers : peers_) {
      for (const auto& peer : peers) {
        if (peer) peer->leave();
      }
    }
  }

  ShmPeer* neighbour(size_t lane, int peer) const {
    return peers_[lane][static_cast<size_t>(peer)].get();
  }
  TransferPtr post(ShmPeer& peer, int rank, const PostPtr& post, bool sends);
  bool drop(ShmPeer& peer, const PostPtr& post) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peer.drop(post);
  }
  void wait(ShmPeer& peer, int rank, Post& post);
  void move_all();
  void check();
  [[noreturn]] void fail(int peer, const std::string& what);

  int rank_;
  std::unique_ptr<ShmSegment> segment_;
  std::array<Peers, lanes> peers_;
  std::unique_ptr<Transport> other_;
  Apart apart_;
  mutable std::mutex mutex_;
  std::mutex reason_mutex_;
  std::string reason_;
  std::atomic<bool> aborted_{false};
  std::atomic<int> waiters_{0};
};

class SharedMemoryTransport::SharedTransfer final : public Transfer {
 public:
  SharedTransfer(SharedMemoryTransport& transport, ShmPeer& peer, int rank, PostPtr post)
      : transport_(transport), peer_(peer), rank_(rank), post_(std::move(post)) {}
  ~SharedTransfer() override {
    if (!post_->done && !transport_.drop(peer_, post_)) transport_.abort("a message was cut off");
  }
  void wait() override { transport_.wait(peer_, rank_, *post_); }

 private:
  SharedMemoryTransport& transport_;
  ShmPeer& peer_;
  int rank_;
  PostPtr post_;
};

TransferPtr SharedMemoryTransport::send(size_t lane, int to, uint64_t tag, const void* data,
                                        size_t bytes) {
  if (!neighbour(lane, to)) return other_->send(to, tag, data, bytes);
  const auto message = std::make_shared<Post>();
  message->tag = tag;
  message->bytes = bytes;
  message->memory = static_cast<std::byte*>(const_cast<void*>(data));
  return post(*neighbour(lane, to), to, message, true);
}

TransferPtr SharedMemoryTransport::recv(size_t lane, int from, uint64_t tag, void* data,
                                        size_t bytes) {
  if (!neighbour(lane, from)) return other_->recv(from, tag, data, bytes);
  const auto message = std::make_shared<Post>();
  message->tag = tag;
  message->bytes = bytes;
  message->memory = static_cast<std::byte*>(data);
  return post(*neighbour(lane, from), from, message, false);
}

TransferPtr SharedMemoryTransport::recv(size_t lane, int from, uint64_t tag, size_t bytes,
                                        Reader reader) {
  if (!neighbour(lane, from)) return other_->recv(from, tag, bytes, std::move(reader));
  const auto message = std::make_shared<Post>();
  message->tag = tag;
  message->bytes = bytes;
  message->reader = std::move(reader);
  return post(*neighbour(lane, from), from, message, false);
}

TransferPtr SharedMemoryTransport::post(ShmPeer& peer, int rank, const PostPtr& post, bool sends) {
  check();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sends) {
    peer.add_send(post);
    // A completed message may be one that another thread waits for.
    if (peer.move() && waiters_ > 0) segment_->ring_bell();
  } else {
    peer.add_recv(post);
  }
  return std::make_unique<SharedTransfer>(*this, peer, rank, post);
}

void SharedMemoryTransport::move_all() {
  bool completed = false;
  for (const Peers& peers : peers_) {
    for (const auto& peer : peers) {
      if (peer) completed = peer->move() || completed;
    }
  }
  // A completed message may be one that another thread waits for.
  if (completed && waiters_ > 1) segment_->ring_bell();
}

void SharedMemoryTransport::wait(ShmPeer& peer, int rank, Post& post) {
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
      gone = peer.gone();
    }
    if (post.done && post.error) std::rethrow_exception(post.error);
    if (post.done) return;
    check();
    if (gone) fail(rank, "it left");
    if (++spins < max_spins) {
      sched_yield();
      continue;
    }
    segment_->sleep(seen, max_sleep);
    if (segment_->bell() == seen && peer.dead()) fail(rank, "its process ended");
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
    return std::make_unique<ShmSegment>(offer.process, offer.descriptor,
                                        ranks * static_cast<int>(lanes), ring_bytes_for(ranks),
                                        offer.cookie);
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
    segment = std::make_unique<ShmSegment>(options.size * static_cast<int>(lanes),
                                           ring_bytes_for(options.size), mine.cookie);
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
  std::array<SharedMemoryTransport::Peers, lanes> peers;
  for (auto& of_lane : peers) of_lane.resize(size);
  bool alone = true;
  bool others = false;
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = 0; b < size; ++b) {
      const bool both = all.at(a).at(b) == '1' && all.at(b).at(a) == '1';
      others = others || (a != b && !both);
      if (a != me || !both) continue;
      alone = false;
      const std::shared_ptr<ShmSegment> shared = std::move(theirs[b]);
      for (size_t lane = 0; lane < lanes; ++lane) {
        const int ring = static_cast<int>(lane) * options.size;
        peers[lane][b] = std::make_unique<ShmPeer>(from_text(offers[b]).process, shared,
                                                   segment->ring(ring + static_cast<int>(b)),
                                                   ring + options.rank);
      }
    }
  }
  if (segment) segment->close_descriptor();
  std::unique_ptr<Transport> other = others ? options.other() : nullptr;
  if (alone && other) return other;
  return std::make_unique<SharedMemoryTransport>(options.rank, std::move(segment), std::move(peers),
                                                 std::move(other));
}

}  // namespace tessera::detail
