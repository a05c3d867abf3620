#include <tessera/framework/comm/cpu/encrypted_relay.hpp>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include <tessera/framework/cluster/internal/message_cipher.hpp>

namespace tessera::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto flush_time = 5s;  ///< maximum time of flush()
constexpr auto drain_time = 2s;  ///< maximum time of the destructor

/// A record: its length (32-bit little-endian), encrypted bytes, tag.
constexpr size_t record_head = 4;
constexpr size_t max_content = size_t{64} << 10;
constexpr size_t max_record = record_head + max_content + MessageCipher::tag_bytes;
/// Maximum number of reads of a pair in turn, so that the others are served, too.
constexpr int max_reads = 8;

enum class Progress { done, blocked, broken };

/// Writes as much of bytes [begin, end) as the socket takes, and moves `begin`.
Progress write_bytes(int socket, std::span<const char> bytes, size_t& begin, size_t end) {
  while (begin < end) {
    const ssize_t count =
        ::send(socket, bytes.data() + begin, end - begin, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? Progress::blocked : Progress::broken;
    begin += static_cast<size_t>(count);
  }
  return Progress::done;
}

/// Reads at least one byte into `space`, and stores how many.
Progress read_some(int socket, std::span<char> space, size_t& bytes) {
  ssize_t count = -1;
  do {
    count = ::recv(socket, space.data(), space.size(), MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return Progress::blocked;
  if (count <= 0) return Progress::broken;
  bytes = static_cast<size_t>(count);
  return Progress::done;
}

}  // namespace

/// A connection of Gloo's and the peer's that it is passed on to.
struct EncryptedRelay::Pair {
  /// Bytes [begin, end) of a buffer.
  struct ByteRange {
    size_t begin = 0;
    size_t end = 0;
    bool empty() const { return begin == end; }
  };

  Pair(int rank, FileDescriptor gloo_end, PeerConnection connection)
      : peer(rank),
        inner(std::move(gloo_end)),
        outer(std::move(connection.socket)),
        sealer(std::move(connection.keys.send)),
        opener(std::move(connection.keys.receive)) {}

  bool closed() const { return !outer.valid(); }
  void close() {
    outer.reset();
    inner.reset();
  }

  /// Passes bytes from Gloo to the peer. Returns false if nothing more can be sent.
  bool send() {
    for (int reads = 0;; ++reads) {
      const Progress written = write_bytes(outer.get(), record, unsent.begin, unsent.end);
      if (written != Progress::done) return written == Progress::blocked;
      if (reads == max_reads) return true;
      size_t size = 0;
      const Progress read =
          read_some(inner.get(), std::span(record).subspan(record_head, max_content), size);
      if (read != Progress::done) return read == Progress::blocked;
      for (size_t i = 0; i < record_head; ++i) record[i] = static_cast<char>(size >> (8 * i));
      unsent = {0, record_head + size + MessageCipher::tag_bytes};
      sealer.seal(std::span(record).first(unsent.end), record_head);
    }
  }

  /// Opens the next record that has arrived in full. Returns false if there is none.
  bool open_next() {
    const size_t arrived_bytes = arrived.end - arrived.begin;
    if (arrived_bytes < record_head) return false;
    const auto record_bytes = std::span(input).subspan(arrived.begin, arrived_bytes);
    size_t size = 0;
    for (size_t i = record_head; i-- > 0;) size = size << 8 | static_cast<uint8_t>(record_bytes[i]);
    changed = size == 0 || size > max_content;
    const size_t total = record_head + size + MessageCipher::tag_bytes;
    if (changed || arrived_bytes < total) return false;
    changed = !opener.open(record_bytes.first(total), record_head);
    if (changed) return false;
    opened = {arrived.begin + record_head, arrived.begin + record_head + size};
    arrived.begin += total;
    return true;
  }

  /// Passes bytes from the peer to Gloo. Returns false if the peer sends nothing more, or a record
  /// was changed.
  bool receive() {
    for (int reads = 0;;) {
      const Progress written = write_bytes(inner.get(), input, opened.begin, opened.end);
      if (written == Progress::blocked) return true;
      // Bytes that Gloo wrote before it closed its end are still to be sent.
      gloo_closed = gloo_closed || written == Progress::broken;
      if (gloo_closed) {
        opened = {};
        return true;
      }
      if (open_next()) continue;
      if (changed) return false;
      if (reads++ == max_reads) return true;
      std::memmove(input.data(), input.data() + arrived.begin, arrived.end - arrived.begin);
      arrived = {0, arrived.end - arrived.begin};
      size_t size = 0;
      const Progress read = read_some(outer.get(), std::span(input).subspan(arrived.end), size);
      if (read != Progress::done) return read == Progress::blocked;
      arrived.end += size;
    }
  }

  /// Whether bytes that Gloo has written are not with the system yet.
  bool has_unsent() const {
    int waiting = 0;
    if (closed()) return false;
    return !unsent.empty() || (::ioctl(inner.get(), FIONREAD, &waiting) == 0 && waiting > 0);
  }

  int peer;
  FileDescriptor inner;
  FileDescriptor outer;
  MessageCipher sealer;
  MessageCipher opener;
  std::vector<char> record = std::vector<char>(max_record);
  ByteRange unsent;
  std::vector<char> input = std::vector<char>(4 * max_record);
  ByteRange arrived;         ///< bytes of `input` that are not opened yet
  ByteRange opened;          ///< bytes of `input` for Gloo
  bool changed = false;      ///< whether a record is not as the peer sealed it
  bool gloo_closed = false;  ///< whether Gloo takes no more bytes
};

EncryptedRelay::EncryptedRelay(std::vector<PeerConnection>& peers,
                               std::function<void(int peer)> on_changed)
    : on_changed_(std::move(on_changed)) {
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    if (!peers[rank].socket.valid()) continue;
    auto [here, gloo_end] = connected_pair();
    pairs_.push_back(std::make_unique<Pair>(static_cast<int>(rank), std::move(here),
                                            std::exchange(peers[rank], PeerConnection())));
    peers[rank].socket = std::move(gloo_end);
  }
  thread_ = std::thread([this] { run(); });
}

EncryptedRelay::~EncryptedRelay() {
  {
    const std::lock_guard lock(mutex_);
    end_ = steady_clock::now() + drain_time;
  }
  waker_.wake();
  thread_.join();
}

void EncryptedRelay::flush() {
  std::unique_lock lock(mutex_);
  flush_requested_ = true;
  waker_.wake();
  changed_.wait_for(lock, flush_time, [this] { return !flush_requested_ || over_; });
}

void EncryptedRelay::close() {
  {
    const std::lock_guard lock(mutex_);
    close_requested_ = true;
  }
  waker_.wake();
}

void EncryptedRelay::run() {
  try {
    serve();
  } catch (const std::exception&) {
    // Out of memory. The peers notice the closed connections, and Gloo those of this process.
  }
  close_all();
  const std::lock_guard lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

void EncryptedRelay::serve() {
  while (take_requests()) {
    Time until = steady_clock::now() + 60s;
    {
      const std::lock_guard lock(mutex_);
      until = std::min(until, end_.value_or(until));
    }
    wait(until);
  }
}

bool EncryptedRelay::take_requests() {
  const std::lock_guard lock(mutex_);
  if (close_requested_) return false;
  if (flush_requested_ && all_sent()) {
    flush_requested_ = false;
    changed_.notify_all();
  }
  const auto is_closed = [](const auto& pair) { return pair->closed(); };
  if (end_ && (*end_ <= steady_clock::now() || std::ranges::all_of(pairs_, is_closed))) {
    return false;
  }
  return true;
}

void EncryptedRelay::wait(Time until) {
  std::vector<pollfd> entries = {{waker_.descriptor(), POLLIN, 0}};
  for (const auto& pair : pairs_) {
    // poll() skips negative descriptors: those of closed pairs, and those without a task.
    const auto add = [&](const FileDescriptor& socket, bool reads, bool writes) {
      const auto events = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
      entries.push_back({events == 0 ? -1 : socket.get(), events, 0});
    };
    add(pair->inner, pair->unsent.empty(), !pair->opened.empty());
    add(pair->outer, pair->opened.empty() && !pair->gloo_closed, !pair->unsent.empty());
  }
  if (::poll(entries.data(), entries.size(), poll_time(until)) <= 0) return;
  if (entries[0].revents != 0) waker_.clear();
  for (size_t i = 0; i < pairs_.size(); ++i) {
    Pair& pair = *pairs_[i];
    if ((entries[2 * i + 1].revents | entries[2 * i + 2].revents) == 0) continue;
    if (pair.send() && pair.receive()) continue;
    if (pair.changed) on_changed_(pair.peer);
    pair.close();
  }
}

bool EncryptedRelay::all_sent() const {
  return std::ranges::none_of(pairs_, [](const auto& pair) { return pair->has_unsent(); });
}

void EncryptedRelay::close_all() {
  for (const auto& pair : pairs_) pair->close();
}

}  // namespace tessera::detail
