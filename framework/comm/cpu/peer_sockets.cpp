#include <tessera/framework/comm/cpu/peer_sockets.hpp>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>

namespace tessera::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Time = steady_clock::time_point;

/// Deadline for a connection to prove that it belongs to this run.
constexpr auto proof_timeout = 5s;
/// Maximum number of connections without a proof; beyond it the oldest is closed.
constexpr size_t max_unproven = 128;

/// The address at which a rank listens, and its nonce.
struct Endpoint {
  std::string address;
  int port = 0;
  std::string nonce;
};

std::string endpoint_text(const Endpoint& endpoint) {
  BodyWriter body;
  return body.text(endpoint.address)
      .number(static_cast<uint64_t>(endpoint.port))
      .text(endpoint.nonce)
      .bytes();
}

Endpoint read_endpoint(const std::string& text) {
  BodyReader body(text);
  Endpoint endpoint;
  endpoint.address = body.text();
  endpoint.port = static_cast<int>(body.number());
  endpoint.nonce = body.text();
  body.finish();
  return endpoint;
}

/// The two ends of a connection, of which the lower rank listens. Each proof covers both nonces.
struct Ends {
  int low = 0;
  int high = 0;
  std::string high_nonce = {};
  std::string low_nonce = {};

  std::string proof(const std::string& secret, const char* side) const {
    return proof_of(secret, {"peer", side, str(low), str(high), high_nonce, low_nonce});
  }
  /// Returns the keys as the lower or the higher rank uses them.
  SessionKeys keys(const std::string& secret, bool is_low) const {
    SessionKeys keys{proof(secret, "data of high"), proof(secret, "data of low")};
    if (is_low) std::swap(keys.send, keys.receive);
    return keys;
  }
};

constexpr const char* high_side = "high";
constexpr const char* low_side = "low";

/// An untrusted connection.
struct UnprovenPeer {
  FrameSocket socket;
  Time deadline;
  Ends ends = {};
  bool greeted = false;
};

[[noreturn]] void fail(const GlooOptions& options, int peer, const std::string& why) {
  throw CommError("gloo", str("rank ", options.rank, " connects with rank ", peer), why,
                  "check addresses and firewall between these hosts");
}

/// The side of the lower rank: waits for all higher ranks.
class PeerAcceptor {
 public:
  PeerAcceptor(const GlooOptions& options, FileDescriptor listener, std::string secret)
      : options_(options),
        listener_(std::move(listener)),
        secret_(std::move(secret)),
        peers_(static_cast<size_t>(options.size)) {}

  std::vector<PeerConnection> accept_all() {
    const Time end = steady_clock::now() + options_.timeout;
    int missing = options_.size - 1 - options_.rank;
    while (missing > 0) {
      if (steady_clock::now() >= end) fail(options_, first_missing(), "it did not come");
      wait(end);
      for (auto each = unproven_.begin(); each != unproven_.end();) {
        const bool stays = serve(*each, missing);
        each = stays ? std::next(each) : unproven_.erase(each);
      }
    }
    return std::move(peers_);
  }

 private:
  int first_missing() const {
    int peer = options_.rank + 1;
    while (peers_[static_cast<size_t>(peer)].socket.valid()) ++peer;
    return peer;
  }

  void wait(Time end) {
    std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
    for (const UnprovenPeer& each : unproven_) {
      entries.push_back({each.socket.descriptor(), POLLIN, 0});
      end = std::min(end, each.deadline);
    }
    ::poll(entries.data(), entries.size(), poll_time(end));
    for (FileDescriptor accepted = accept_from(listener_); accepted.valid();
         accepted = accept_from(listener_)) {
      if (unproven_.size() >= max_unproven) unproven_.pop_front();
      unproven_.push_back(
          {FrameSocket(std::move(accepted), max_hello_bytes), steady_clock::now() + proof_timeout});
    }
    // Most likely out of file descriptors: retrying at once would fail, too.
    if (errno != EAGAIN) std::this_thread::sleep_for(50ms);
  }

  /// Reads from a connection. Returns false if it is to be removed: closed, too slow, invalid, or
  /// admitted.
  bool serve(UnprovenPeer& peer, int& missing) {
    const bool open = peer.socket.receive();
    try {
      while (const std::optional<Frame> frame = peer.socket.next()) {
        if (!peer.greeted && frame->type == FrameType::hello) {
          greet(peer, frame->body);
          continue;
        }
        if (peer.greeted && frame->type == FrameType::proof) missing -= admit(peer, *frame);
        return false;
      }
    } catch (const BadFrame&) {
      return false;
    }
    return open && steady_clock::now() < peer.deadline;
  }

  void greet(UnprovenPeer& peer, const std::string& hello) const {
    BodyReader body(hello);
    const uint64_t rank = body.number();
    peer.ends = {options_.rank, 0, body.text(), random_nonce()};
    body.finish();
    if (rank <= static_cast<uint64_t>(options_.rank) ||
        rank >= static_cast<uint64_t>(options_.size)) {
      throw BadFrame("a rank that does not come here");
    }
    peer.ends.high = static_cast<int>(rank);
    peer.greeted = true;
    peer.socket.send(FrameType::challenge, peer.ends.low_nonce);
  }

  /// Returns 1 if the proof is valid and its rank is now connected, else 0.
  int admit(UnprovenPeer& peer, const Frame& proof) {
    const Ends& ends = peer.ends;
    PeerConnection& slot = peers_[static_cast<size_t>(ends.high)];
    if (slot.socket.valid() || !same_secret(proof.body, ends.proof(secret_, high_side))) return 0;
    peer.socket.send(FrameType::accepted, ends.proof(secret_, low_side));
    slot = {peer.socket.release(), ends.keys(secret_, true)};
    return 1;
  }

  const GlooOptions& options_;
  FileDescriptor listener_;
  std::string secret_;
  std::vector<PeerConnection> peers_;
  std::list<UnprovenPeer> unproven_;
};

/// Returns the body of the next frame; nothing if it has another type, or none arrives.
std::optional<std::string> await(FrameSocket& socket, FrameType type, Time end) {
  while (steady_clock::now() < end) {
    pollfd entry{socket.descriptor(), POLLIN, 0};
    if (::poll(&entry, 1, poll_time(end)) <= 0) continue;
    const bool open = socket.receive();
    if (const std::optional<Frame> frame = socket.next()) {
      if (frame->type == type) return frame->body;
      return std::nullopt;
    }
    if (!open) return std::nullopt;
  }
  return std::nullopt;
}

/// The side of the higher rank: connects to a lower one.
PeerConnection connect_down(const GlooOptions& options, int peer, const Endpoint& endpoint,
                            const std::string& secret) {
  const Time end = steady_clock::now() + options.timeout;
  const std::string address = address_text(endpoint.address, endpoint.port);
  std::string error = "no answer";
  FileDescriptor connection = connect_to(endpoint.address, endpoint.port, end, error);
  if (!connection.valid()) fail(options, peer, str(error, " at ", address));
  FrameSocket socket(std::move(connection), max_hello_bytes);
  Ends ends{peer, options.rank, random_nonce()};
  BodyWriter hello;
  hello.number(static_cast<uint64_t>(options.rank)).text(ends.high_nonce);
  socket.send(FrameType::hello, hello.bytes());
  try {
    if (const auto nonce = await(socket, FrameType::challenge, end)) {
      ends.low_nonce = *nonce;
      socket.send(FrameType::proof, ends.proof(secret, high_side));
      const auto proof = await(socket, FrameType::accepted, end);
      if (proof && same_secret(*proof, ends.proof(secret, low_side))) {
        return {socket.release(), ends.keys(secret, false)};
      }
    }
  } catch (const BadFrame&) {
    // Another program listens there.
  }
  fail(options, peer, str("no proof from ", address, " that it is of this run"));
}

}  // namespace

std::vector<PeerConnection> connect_peers(const GlooOptions& options) {
  Endpoint mine{options.address, 0, random_nonce()};
  std::string error;
  FileDescriptor listener = listen_at(options.address, mine.port, error);
  if (!listener.valid()) {
    throw CommError("gloo", "this process listens at " + options.address, error,
                    "pass an address of this host that the others reach");
  }
  std::vector<Endpoint> endpoints;
  for (const std::string& text : options.gather(endpoint_text(mine))) {
    endpoints.push_back(read_endpoint(text));
  }
  const std::string secret = options.secret.empty() ? endpoints.at(0).nonce : options.secret;
  std::vector<PeerConnection> down;
  for (int peer = 0; peer < options.rank; ++peer) {
    down.push_back(connect_down(options, peer, endpoints.at(static_cast<size_t>(peer)), secret));
  }
  std::vector<PeerConnection> peers =
      PeerAcceptor(options, std::move(listener), secret).accept_all();
  std::move(down.begin(), down.end(), peers.begin());
  return peers;
}

}  // namespace tessera::detail
