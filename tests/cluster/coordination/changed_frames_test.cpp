#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

#include "tests/cluster/coordination/coordination_ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/wire_proxy.hpp"

namespace changed_frames_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::WireProxy;

namespace {

constexpr size_t frame_head = 9;
const std::string secret(32, 's');
const std::string marker = "this text crosses the network";

/// Returns what the attacker passes on instead of protected frame `number` of a direction, from 0.
using Attack = std::function<std::string(int number, const std::string& frame)>;

std::string pass_on(int, const std::string& frame) { return frame; }

/// Splits one direction of a connection into frames, and applies an attack to those after the
/// handshake if they are protected.
class FrameEdit {
 public:
  FrameEdit(Attack attack, bool has_secret) : attack_(std::move(attack)), has_secret_(has_secret) {}

  std::string operator()(std::string_view bytes) {
    buffer_ += bytes;
    std::string out;
    while (buffer_.size() >= frame_head) {
      size_t size = 0;
      for (size_t i = 8; i-- > 4;) size = size << 8 | static_cast<uint8_t>(buffer_[i]);
      size += frame_head + (has_secret_ && running_ ? MessageCipher::tag_bytes : 0);
      if (buffer_.size() < size) break;
      const std::string frame = buffer_.substr(0, size);
      buffer_.erase(0, size);
      out += running_ ? attack_(number_++, frame) : frame;
      const auto type = static_cast<FrameType>(frame[8]);
      if (type == FrameType::proof || type == FrameType::accepted) running_ = true;
    }
    return out;
  }

 private:
  Attack attack_;
  bool has_secret_;
  bool running_ = false;
  int number_ = 0;
  std::string buffer_;
};

/// Returns an attack on one frame in the midst of the run.
Attack on_one(const std::function<std::string(const std::string& frame)>& change) {
  return [=](int number, const std::string& frame) { return number == 5 ? change(frame) : frame; };
}

Attack flip(const std::function<size_t(const std::string& frame)>& index) {
  return on_one([=](std::string frame) {
    char& byte = frame[index(frame)];
    byte = static_cast<char>(byte ^ 1);
    return frame;
  });
}

std::vector<std::pair<std::string, Attack>> attacks() {
  const auto at = [](size_t index) { return flip([=](const std::string&) { return index; }); };
  // Held back until the next frame has passed.
  const Attack swap = [held = std::string()](int number, const std::string& frame) mutable {
    if (number == 5) held = frame;
    if (number == 5) return std::string();
    return number == 6 ? frame + held : frame;
  };
  const std::string forged = encode_frame(FrameType::heartbeat, BodyWriter().number(0).bytes()) +
                             std::string(MessageCipher::tag_bytes, '\0');
  return {
      {"the first byte", at(0)},
      {"the length", at(4)},
      {"the type", at(8)},
      {"the tag", flip([](const std::string& frame) { return frame.size() - 1; })},
      {"the end of the body",
       flip([](const std::string& frame) { return frame.size() - MessageCipher::tag_bytes - 1; })},
      {"repeated", on_one([](const std::string& frame) { return frame + frame; })},
      {"left out", on_one([](const std::string&) { return std::string(); })},
      {"added", on_one([=](const std::string& frame) { return forged + frame; })},
      {"swapped", swap},
  };
}

/// Runs two ranks, of which rank 1 connects through an attacker. Returns the errors of both.
std::vector<std::string> run(const JobAccess& access, const Attack& up, const Attack& down) {
  const int port = free_port();
  const bool has_secret = !access.secret.empty();
  const WireProxy proxy(port, [&] {
    return WireProxy::Edits{FrameEdit(up, has_secret), FrameEdit(down, has_secret)};
  });
  return test::on_threads(2, [&](int rank) {
    CoordinationOptions options = test::rank_options(rank, 2, rank == 0 ? port : proxy.port());
    options.access = access;
    const auto coordination = Coordination::join(options);
    for (int i = 0; i < 50; ++i) {
      const auto texts = coordination->gather("key", marker);
      if (texts != std::vector<std::string>(2, marker)) throw CommError("other texts");
    }
    coordination->leave();
  });
}

}  // namespace

TEST_CASE("a frame that was changed on the way ends the run and names its sender") {
  const bool encrypts = GENERATE(false, true);
  const JobAccess access{secret, false, encrypts};
  for (const auto& [name, attack] : attacks()) {
    INFO(name << (encrypts ? ", encrypted" : ""));
    const auto is_named = [](const std::string& error, int sender) {
      const std::string from =
          str("[coordination] frames between processes arrive as they were "
              "sent. Received: a frame of rank ",
              sender, " (pid ");
      CHECK_THAT(error, Contains(from) && Contains(") was changed on the way, or repeated, left "
                                                   "out or added. To fix: find who can change"));
    };
    const auto upwards = run(access, attack, pass_on);
    is_named(upwards[0], 1);
    CHECK(upwards[1] == upwards[0]);
    const auto downwards = run(access, pass_on, attack);
    is_named(downwards[1], 0);
    is_named(downwards[0], 0);
  }
}

TEST_CASE("frames are readable on the wire unless the run encrypts") {
  const auto found = [](const JobAccess& access) {
    std::string wire;  // the attacker's thread only, until that has ended
    const Attack record = [&](int, const std::string& frame) {
      wire += frame;
      return frame;
    };
    CHECK(run(access, record, record) == std::vector<std::string>(2));
    CHECK(wire.size() > 50 * marker.size());
    return wire.find(marker) != wire.npos;
  };
  CHECK(found({secret, false, false}));
  CHECK_FALSE(found({secret, false, true}));
}

TEST_CASE("frames of a run without a secret have no tags") {
  bool tagged = false;
  const Attack look = [&](int, const std::string& frame) {
    // A frame begins where the body of the one before ends.
    tagged = tagged || !frame.starts_with("TSRC");
    return frame;
  };
  CHECK(run({}, pass_on, look) == std::vector<std::string>(2));
  CHECK_FALSE(tagged);
}

}  // namespace changed_frames_test
