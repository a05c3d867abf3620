#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/internal/message_cipher.hpp>

namespace tessera::detail {

/// Received bytes that no process of this build would send; the text describes only them.
struct BadFrame : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A frame on a protected connection that is not the next one as its sender sealed it.
struct ChangedFrame : BadFrame {
  using BadFrame::BadFrame;
};

/// Messages between a process and rank 0, over the process' only connection.
enum class FrameType : uint8_t {
  hello,      ///< to rank 0: registration, the first frame
  challenge,  ///< from rank 0, if there is a secret: the nonce to prove it with
  proof,      ///< to rank 0: proof of knowing the secret
  refused,    ///< from rank 0: the reason, before it closes the connection
  accepted,   ///< from rank 0: registered; with its own proof
  started,    ///< from rank 0: all ranks are present; the peers
  heartbeat,  ///< both ways; to rank 0 with the last call
  gather,     ///< to rank 0: a key and this rank's text
  gathered,   ///< from rank 0: a key and the text of one rank
  check,      ///< to rank 0: a call to compare
  checked,    ///< from rank 0: all ranks have made the call with this key
  note,       ///< to rank 0: why this process is about to leave
  abort,      ///< to rank 0: ends the run, with the reason
  ask,        ///< from rank 0: the run ends, send the last calls
  calls,      ///< to rank 0: the last calls
  end,        ///< from rank 0: the run is over, with the reason
  goodbye,    ///< to rank 0: this process leaves, with its last call
  farewell,   ///< from rank 0: reply to goodbye; close the connection
  members,    ///< both ways between a process and the register of members: JSON
};

struct Frame {
  FrameType type = FrameType::heartbeat;
  std::string body;
};

/// maximum size of a text that ranks exchange
inline constexpr size_t max_text_bytes = size_t{64} << 20;
/// maximum size of a frame's body: a text and its other fields
inline constexpr size_t max_body_bytes = max_text_bytes + (size_t{64} << 10);
/// maximum size of a connection's first frame, which is untrusted
inline constexpr size_t max_hello_bytes = 4096;

/// How the frames of one direction of a connection are protected: by a tag, which also detects that
/// one is missing or repeated, and by encryption of their bodies.
struct FrameProtection {
  MessageCipher cipher;
  bool encrypts = false;
};

/// Returns the bytes of a frame: magic and body length (both 32-bit little-endian), type, body and,
/// if it is protected, a tag.
std::string encode_frame(FrameType type, std::string_view body,
                         FrameProtection* protection = nullptr);

/// Splits the bytes of a connection into frames. Allocates as bytes arrive, never by an announced
/// length.
class FrameBuffer {
 public:
  explicit FrameBuffer(size_t max_body) : max_body_(max_body) {}

  void set_max_body(size_t bytes) { max_body_ = bytes; }
  /// Expects every further frame to be protected.
  void protect(FrameProtection protection) { protection_ = std::move(protection); }
  void append(std::string_view bytes) { bytes_.append(bytes); }
  /// Returns the next frame; nullopt while it is incomplete. Throws BadFrame for invalid bytes,
  /// even before the frame is complete; if frames are protected, ChangedFrame.
  std::optional<Frame> next();
  /// Drops all received bytes.
  void clear();

 private:
  [[noreturn]] void fail(const std::string& received) const;

  std::string bytes_;
  size_t begin_ = 0;  ///< offset of the next frame
  size_t max_body_;
  std::optional<FrameProtection> protection_;
};

/// Serializes the fields of a frame's body.
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

/// Deserializes the fields of a frame's body. Throws BadFrame if the body is too short.
class BodyReader {
 public:
  explicit BodyReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t number();
  /// Reads an element count; throws BadFrame if that many elements of at least `bytes_each` bytes
  /// do not fit the rest of the body.
  size_t count(size_t bytes_each);
  std::string text();
  CallRecord call();
  std::optional<CallRecord> last_call();
  Peer peer();
  /// Throws BadFrame if bytes are left.
  void finish() const;

 private:
  std::string_view take(size_t count);

  std::string_view bytes_;
};

/// Registration of a process.
struct Hello {
  std::string job;
  int64_t size = 0;
  Peer peer;
  /// nonce with which rank 0 has to prove the secret
  std::string nonce = {};
  bool has_secret = false;  ///< whether the process will ask rank 0 for that proof
  bool encrypts = false;    ///< whether the process expects its traffic to be encrypted
};

/// Prefixes of the proofs of a rank and of rank 0, so that neither can be replayed as the other.
inline constexpr const char* proof_of_rank = "control: rank";
inline constexpr const char* proof_of_hub = "control: rank 0";

std::string encode_hello(const Hello& hello);
/// Throws BadFrame unless the body is a hello of this protocol version.
Hello decode_hello(std::string_view body);

}  // namespace tessera::detail
