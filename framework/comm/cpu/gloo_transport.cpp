#include <tessera/framework/comm/cpu/gloo_transport.hpp>

#include <exception>
#include <map>
#include <mutex>
#include <set>

#include <dlfcn.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/cpu/encrypted_relay.hpp>
#include <tessera/framework/comm/cpu/gloo_pair.hpp>
#include <tessera/framework/comm/cpu/peer_sockets.hpp>
#include <tessera/framework/comm/internal/signal_guard.hpp>

namespace tessera::detail {
namespace {

/// A timeout in Gloo closes all connections, so it must never expire: the coordination decides
/// which ranks are alive.
constexpr std::chrono::hours gloo_timeout{24 * 365};

using Buffer = gloo::transport::UnboundBuffer;
using BufferPtr = std::unique_ptr<Buffer>;

/// The transfers in progress and their peers, which an abort wakes.
class Pending {
 public:
  void add(Buffer* buffer, int peer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    check(peer);
    buffers_.emplace(buffer, peer);
  }
  void remove(Buffer* buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    buffers_.erase(buffer);
  }
  /// Returns whether this is the first reason.
  bool abort(const std::string& reason) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reason_.empty()) return false;
    reason_ = reason;
    for (const auto& [buffer, peer] : buffers_) wake(*buffer);
    return true;
  }
  /// Ends the transfers with a peer one of whose messages was not received as it was sent. Gloo
  /// does not tell all of them that their connection is closed: a message that it could not write
  /// in full would wait forever.
  void note_changed(int changed) {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.insert(changed);
    for (const auto& [buffer, peer] : buffers_) {
      if (peer == changed) wake(*buffer);
    }
  }
  [[noreturn]] void fail(int peer, const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    check(peer);
    throw CommError("gloo", str("the connection to rank ", peer, " stays open"), what, "");
  }

 private:
  static void wake(Buffer& buffer) {
    buffer.abortWaitRecv();
    buffer.abortWaitSend();
  }
  void check(int peer) const {
    // This reason comes first: the other rank, which lost its connection, may have aborted already.
    if (changed_.contains(peer)) {
      throw CommError(
          "gloo", "messages arrive as they were sent",
          str("one of rank ", peer, " was changed on the way, or repeated, left out or added"),
          "find who can change packets between these hosts");
    }
    if (!reason_.empty()) throw CommError("gloo", "the transport was aborted", reason_, "");
  }

  std::mutex mutex_;
  std::map<Buffer*, int> buffers_;
  std::set<int> changed_;
  std::string reason_;
};

/// Reuses memory for messages that are read once, while it is still in the cache.
class Scratch {
 public:
  using Memory = std::unique_ptr<std::byte[]>;
  Memory take(size_t bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty() && bytes <= pooled_bytes) {
        Memory memory = std::move(free_.back());
        free_.pop_back();
        return memory;
      }
    }
    return Memory(new std::byte[std::max(bytes, pooled_bytes)]);
  }
  void give_back(Memory memory, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes <= pooled_bytes && free_.size() < 16) free_.push_back(std::move(memory));
  }

 private:
  static constexpr size_t pooled_bytes = size_t{1} << 19;
  std::mutex mutex_;
  std::vector<Memory> free_;
};

class GlooTransfer : public Transfer {
 public:
  GlooTransfer(Pending& pending, BufferPtr buffer, int peer, bool sends)
      : pending_(pending), buffer_(std::move(buffer)), peer_(peer), sends_(sends) {
    pending_.add(buffer_.get(), peer);
  }
  ~GlooTransfer() override { end(); }

  void wait() override {
    bool arrived = false;
    std::string what = "aborted";
    try {
      arrived = sends_ ? buffer_->waitSend(gloo_timeout) : buffer_->waitRecv(gloo_timeout);
    } catch (const std::exception& error) {
      what = error.what();
    }
    if (!arrived) pending_.fail(peer_, what);
  }

 protected:
  void end() {
    if (!buffer_) return;
    pending_.remove(buffer_.get());
    buffer_.reset();
  }

 private:
  Pending& pending_;
  BufferPtr buffer_;
  int peer_;
  bool sends_;
};

class GlooReading final : public GlooTransfer {
 public:
  GlooReading(Pending& pending, BufferPtr buffer, int peer, Scratch& scratch,
              Scratch::Memory memory, size_t bytes, Reader reader)
      : GlooTransfer(pending, std::move(buffer), peer, false),
        scratch_(scratch),
        memory_(std::move(memory)),
        bytes_(bytes),
        reader_(std::move(reader)) {}
  ~GlooReading() override {
    end();
    scratch_.give_back(std::move(memory_), bytes_);
  }

  void wait() override {
    GlooTransfer::wait();
    reader_(memory_.get(), 0, bytes_);
  }

 private:
  Scratch& scratch_;
  Scratch::Memory memory_;
  size_t bytes_;
  Reader reader_;
};

class GlooTransport final : public Transport {
 public:
  explicit GlooTransport(const GlooOptions& options) : rank_(options.rank), size_(options.size) {
    const SignalGuard guard(SignalGuard::Which::all);
    std::vector<PeerConnection> peers = connect_peers(options);
    if (options.encrypt) {
      relay_ = std::make_unique<EncryptedRelay>(peers,
                                                [this](int peer) { pending_.note_changed(peer); });
    }
    device_ = gloo_device();
    context_ = device_->createContext(rank_, size_);
    context_->setTimeout(options.timeout);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      create_connected_pair(*context_, peer, *device_, peers[static_cast<size_t>(peer)].socket);
    }
    // No rank may leave while others still connect to it.
    options.gather("connected");
  }
  ~GlooTransport() override {
    const SignalGuard guard(SignalGuard::Which::pipe);
    context_.reset();
    device_.reset();
    relay_.reset();
  }

  std::string name() const override { return "gloo"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool sends_in_background() const override { return true; }

  TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override {
    BufferPtr buffer = context_->createUnboundBuffer(const_cast<void*>(data), bytes);
    Buffer& post = *buffer;
    auto transfer = std::make_unique<GlooTransfer>(pending_, std::move(buffer), to, true);
    start(to, [&] { post.send(to, tag); });
    return transfer;
  }

  TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override {
    BufferPtr buffer = context_->createUnboundBuffer(data, bytes);
    Buffer& post = *buffer;
    auto transfer = std::make_unique<GlooTransfer>(pending_, std::move(buffer), from, false);
    start(from, [&] { post.recv(from, tag); });
    return transfer;
  }

  TransferPtr recv(int from, uint64_t tag, size_t bytes, Reader reader) override {
    Scratch::Memory memory = scratch_.take(bytes);
    BufferPtr buffer = context_->createUnboundBuffer(memory.get(), bytes);
    Buffer& post = *buffer;
    auto transfer = std::make_unique<GlooReading>(pending_, std::move(buffer), from, scratch_,
                                                  std::move(memory), bytes, std::move(reader));
    start(from, [&] { post.recv(from, tag); });
    return transfer;
  }

  void flush() override {
    if (relay_) relay_->flush();
  }

  void abort(const std::string& reason) override {
    if (!pending_.abort(reason)) return;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) context_->getPair(peer)->close();
    }
    if (relay_) relay_->close();
  }

 private:
  template <class Post>
  void start(int peer, const Post& post) {
    const SignalGuard guard(SignalGuard::Which::pipe);
    try {
      post();
    } catch (const std::exception& error) {
      pending_.fail(peer, error.what());
    }
  }

  int rank_;
  int size_;
  Pending pending_;
  Scratch scratch_;
  std::unique_ptr<EncryptedRelay> relay_;  ///< null if messages are not encrypted
  std::shared_ptr<gloo::transport::tcp::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
};

/// libtorch_cpu contains another version of Gloo, which crashes if its symbols are used by mistake.
void check_library() {
  Dl_info info{};
  const auto function = &gloo::transport::tcp::CreateDevice;
  const bool known = dladdr(reinterpret_cast<const void*>(function), &info) != 0;
  const std::string file = known && info.dli_fname ? info.dli_fname : "an unknown file";
  if (file.find("libgloo") != std::string::npos) return;
  throw CommError("gloo", "the functions of Gloo come from libgloo.so", file,
                  "link the program with libgloo before libtorch_cpu, within "
                  "-Wl,--push-state,--no-as-needed ... -Wl,--pop-state");
}

}  // namespace

std::unique_ptr<Transport> gloo_transport(const GlooOptions& options) {
  check_library();
  try {
    return std::make_unique<GlooTransport>(options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw CommError("gloo", "Gloo serves the connections of this process", error.what(), "");
  }
}

}  // namespace tessera::detail
