#include <tessera/framework/comm/cpu/peer_sockets.hpp>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <thread>

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

/// What a connection may take to prove that it is of this run.
constexpr auto stranger_time = 5s;
/// Connections that have not; the oldest makes room.
constexpr size_t max_strangers = 128;

/// Where a rank listens, and what it drew at random.
struct Place {
  std::string address;
  int port = 0;
  std::string nonce;
};

std::string place_text(const Place& place) {
  BodyWriter body;
  return body.text(place.address)
      .number(static_cast<uint64_t>(place.port))
      .text(place.nonce)
      .bytes();
}

Place read_place(const std::string& text) {
  BodyReader body(text);
  Place place;
  place.address = body.text();
  place.port = static_cast<int>(body.number());
  place.nonce = body.text();
  body.finish();
  return place;
}

/// The two ends of a connection: the lower rank listens. Each proves by the other's nonce.
struct Ends {
  int low = 0;
  int high = 0;
  std::string high_nonce = {};
  std::string low_nonce = {};

  std::string proof(const std::string& secret, const char* side) const {
    return proof_of(secret, {"peer", side, str(low), str(high), high_nonce, low_nonce});
  }
};

constexpr const char* high_side = "high";
constexpr const char* low_side = "low";

/// One that has connected and may be anybody.
struct Stranger {
  FrameSocket socket;
  Time deadline;
  Ends ends = {};
  bool greeted = false;
};

[[noreturn]] void fail(const GlooOptions& options, int peer, const std::string& why) {
  throw CommError("gloo", str("rank ", options.rank, " connects with rank ", peer), why,
                  "check addresses and firewall between these hosts");
}

/// The side of the lower rank: waits for all the higher ones.
class Door {
 public:
  Door(const GlooOptions& options, FileDescriptor listener, std::string secret)
      : options_(options),
        listener_(std::move(listener)),
        secret_(std::move(secret)),
        peers_(static_cast<size_t>(options.size)) {}

  std::vector<FileDescriptor> take_all() {
    const Time end = steady_clock::now() + options_.timeout;
    int missing = options_.size - 1 - options_.rank;
    while (missing > 0) {
      if (steady_clock::now() >= end) fail(options_, first_missing(), "it did not come");
      wait(end);
      for (auto each = strangers_.begin(); each != strangers_.end();) {
        const bool stays = serve(*each, missing);
        each = stays ? std::next(each) : strangers_.erase(each);
      }
    }
    return std::move(peers_);
  }

 private:
  int first_missing() const {
    int peer = options_.rank + 1;
    while (peers_[static_cast<size_t>(peer)].valid()) ++peer;
    return peer;
  }

  void wait(Time end) {
    std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
    for (const Stranger& each : strangers_) {
      entries.push_back({each.socket.descriptor(), POLLIN, 0});
      end = std::min(end, each.deadline);
    }
    ::poll(entries.data(), entries.size(), poll_time(end));
    for (FileDescriptor accepted = accept_from(listener_); accepted.valid();
         accepted = accept_from(listener_)) {
      if (strangers_.size() >= max_strangers) strangers_.pop_front();
      strangers_.push_back(
          {FrameSocket(std::move(accepted), max_hello_bytes), steady_clock::now() + stranger_time});
    }
    // Most likely out of descriptors: the next try would fail at once, too.
    if (errno != EAGAIN) std::this_thread::sleep_for(50ms);
  }

  /// Whether it may go on: not one that has closed, took too long or has said anything wrong, nor
  /// one that is let in.
  bool serve(Stranger& stranger, int& missing) {
    const bool open = stranger.socket.receive();
    try {
      while (const std::optional<Frame> frame = stranger.socket.next()) {
        if (!stranger.greeted && frame->type == FrameType::hello) {
          greet(stranger, frame->body);
          continue;
        }
        if (stranger.greeted && frame->type == FrameType::proof) missing -= admit(stranger, *frame);
        return false;
      }
    } catch (const BadFrame&) {
      return false;
    }
    return open && steady_clock::now() < stranger.deadline;
  }

  void greet(Stranger& stranger, const std::string& hello) const {
    BodyReader body(hello);
    const uint64_t rank = body.number();
    stranger.ends = {options_.rank, 0, body.text(), random_nonce()};
    body.finish();
    if (rank <= static_cast<uint64_t>(options_.rank) ||
        rank >= static_cast<uint64_t>(options_.size)) {
      throw BadFrame("a rank that does not come here");
    }
    stranger.ends.high = static_cast<int>(rank);
    stranger.greeted = true;
    stranger.socket.send(FrameType::challenge, stranger.ends.low_nonce);
  }

  /// How many of the missing are there now.
  int admit(Stranger& stranger, const Frame& proof) {
    const Ends& ends = stranger.ends;
    FileDescriptor& place = peers_[static_cast<size_t>(ends.high)];
    if (place.valid() || !same_secret(proof.body, ends.proof(secret_, high_side))) return 0;
    stranger.socket.send(FrameType::accepted, ends.proof(secret_, low_side));
    place = stranger.socket.release();
    return 1;
  }

  const GlooOptions& options_;
  FileDescriptor listener_;
  std::string secret_;
  std::vector<FileDescriptor> peers_;
  std::list<Stranger> strangers_;
};

/// The next frame of this type; nothing where something else comes.
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

/// The side of the higher rank.
FileDescriptor connect_down(const GlooOptions& options, int peer, const Place& place,
                            const std::string& secret) {
  const Time end = steady_clock::now() + options.timeout;
  const std::string address = address_text(place.address, place.port);
  std::string error = "no answer";
  FileDescriptor connection = connect_to(place.address, place.port, end, error);
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
      if (proof && same_secret(*proof, ends.proof(secret, low_side))) return socket.release();
    }
  } catch (const BadFrame&) {
    // Something else listens there.
  }
  fail(options, peer, str("no proof from ", address, " that it is of this run"));
}

}  // namespace

std::vector<FileDescriptor> connect_peers(const GlooOptions& options) {
  Place mine{options.address, 0, random_nonce()};
  std::string error;
  FileDescriptor listener = listen_at(options.address, mine.port, error);
  if (!listener.valid()) {
    throw CommError("gloo", "this process listens at " + options.address, error,
                    "pass an address of this host that the others reach");
  }
  std::vector<Place> places;
  for (const std::string& text : options.gather(place_text(mine))) {
    places.push_back(read_place(text));
  }
  const std::string secret = options.secret.empty() ? places.at(0).nonce : options.secret;
  std::vector<FileDescriptor> down;
  for (int peer = 0; peer < options.rank; ++peer) {
    down.push_back(connect_down(options, peer, places.at(static_cast<size_t>(peer)), secret));
  }
  std::vector<FileDescriptor> peers = Door(options, std::move(listener), secret).take_all();
  std::move(down.begin(), down.end(), peers.begin());
  return peers;
}

}  // namespace tessera::detail
