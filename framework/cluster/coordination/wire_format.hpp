#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>

namespace tessera::detail {

/// What came over a connection is not what a process of this build sends. The text names it alone.
struct BadFrame : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the processes of a run tell each other, each over its one connection to rank 0.
enum class FrameType : uint8_t {
  hello,      ///< to rank 0, first of all: who this is
  challenge,  ///< its answer where there is a secret: what to prove it by
  proof,      ///< to rank 0: that this process knows the secret
  refused,    ///< its answer: why not, before the connection is closed
  accepted,   ///< its answer: wait until all are there; its own proof
  started,    ///< all are there: the peers
  beat,       ///< both ways: still here; to rank 0 with the last call
  gather,     ///< to rank 0: a key and this rank's text
  gathered,   ///< a key and the text of one rank
  check,      ///< to rank 0: a call to compare
  checked,    ///< all ranks made the call of this key
  note,       ///< to rank 0: why this process is about to leave
  abort,      ///< to rank 0: end the run, and why
  ask,        ///< the run ends: what are your last calls?
  calls,      ///< the answer
  end,        ///< the run is over, and why
  goodbye,    ///< to rank 0: this process leaves, with its last call
  farewell,   ///< its answer: close the connection
};

struct Frame {
  FrameType type = FrameType::beat;
  std::string body;
};

/// The most bytes of a text that ranks exchange.
inline constexpr size_t max_text_bytes = size_t{64} << 20;
/// The most bytes of the body of a frame: a text and what stands beside it.
inline constexpr size_t max_body_bytes = max_text_bytes + (size_t{64} << 10);
/// The most bytes of the first frame of a connection, which may be anybody's.
inline constexpr size_t max_hello_bytes = 4096;

/// Bytes of a frame: magic, length of the body (both 32 bits, little endian), type, body.
std::string encode_frame(FrameType type, std::string_view body);

/// Cuts the bytes of a connection into frames. Memory is taken as bytes come, not as a length
/// announces them.
class FrameBuffer {
 public:
  explicit FrameBuffer(size_t max_body) : max_body_(max_body) {}

  void set_max_body(size_t bytes) { max_body_ = bytes; }
  void append(std::string_view bytes) { bytes_.append(bytes); }
  /// The next frame, or nothing while it is incomplete. Throws BadFrame for bytes that begin no
  /// frame, also before the frame is complete.
  std::optional<Frame> next();
  /// Forgets what has come.
  void clear();

 private:
  std::string bytes_;
  size_t begin_ = 0;  ///< where the next frame begins
  size_t max_body_;
};

/// Writes the fields of a body one after the other.
class BodyWriter {
 public:
  BodyWriter& number(uint64_t value);
  BodyWriter& text(std::string_view value);
  BodyWriter& call(const CallRecord& call);
  BodyWriter& last_call(const std::vector<CallRecord>& calls);
  BodyWriter& peer(const Peer& peer);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads them back. Throws BadFrame where the body ends too early.
class BodyReader {
 public:
  explicit BodyReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t number();
  /// A number of things that take `bytes_each` bytes at least.
  size_t count(size_t bytes_each);
  std::string text();
  CallRecord call();
  std::optional<CallRecord> last_call();
  Peer peer();
  /// Throws BadFrame if there is more.
  void finish() const;

 private:
  std::string_view take(size_t count);

  std::string_view bytes_;
};

/// How a process introduces itself.
struct Hello {
  std::string job;
  int64_t size = 0;
  Peer peer;
  /// What rank 0 is to prove by that it knows the secret, too.
  std::string nonce = {};
};

/// What proofs of the secret begin with, for which side makes one.
inline constexpr const char* proof_of_rank = "control: rank";
inline constexpr const char* proof_of_hub = "control: rank 0";

std::string encode_hello(const Hello& hello);
/// Throws BadFrame for a body that is no hello of this version of the protocol.
Hello decode_hello(std::string_view body);

}  // namespace tessera::detail
