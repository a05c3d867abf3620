#include <tessera/framework/cluster/coordination/peer_handshake.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/coordination/hello_refusal.hpp>

namespace tessera::detail {
namespace {

[[noreturn]] void fail_type(const Frame& frame, const char* expected) {
  throw BadFrame(str("a frame of type ", static_cast<int>(frame.type), " instead of ", expected));
}

}  // namespace

SessionKeys control_keys(const std::string& secret, const std::string& hello,
                         const std::string& nonce, bool is_hub) {
  SessionKeys keys{proof_of(secret, {"control: frames of a rank", hello, nonce}),
                   proof_of(secret, {"control: frames of rank 0", hello, nonce})};
  if (is_hub) std::swap(keys.send, keys.receive);
  return keys;
}

HandshakeReply PeerHandshake::reply_to(const Frame& frame, const CoordinationOptions& options,
                                       std::span<const std::optional<Peer>> present) {
  if (!bytes_.empty()) return reply_to_proof(frame, options, present);
  if (frame.type != FrameType::hello) fail_type(frame, "a hello");
  hello_ = decode_hello(frame.body);
  hello_.peer.address = address_;
  bytes_ = frame.body;
  return reply_to_hello(options, present);
}

HandshakeReply PeerHandshake::reply_to_hello(const CoordinationOptions& options,
                                             std::span<const std::optional<Peer>> present) {
  if (!options.access.secret.empty()) {
    nonce_ = random_nonce();
    return {FrameType::challenge, nonce_};
  }
  const std::string refused = refusal_of(hello_, options, present, own_);
  if (refused.empty()) return {FrameType::accepted};
  HandshakeReply reply{FrameType::refused, refused};
  if (hello_.has_secret) {
    reply.warning = str("[coordination] refused ", who(), ": it has a secret, this run has none");
  }
  return reply;
}

HandshakeReply PeerHandshake::reply_to_proof(const Frame& frame, const CoordinationOptions& options,
                                             std::span<const std::optional<Peer>> present) const {
  if (frame.type != FrameType::proof) fail_type(frame, "a proof");
  const std::string& secret = options.access.secret;
  const auto expected = [&](const char* role) { return proof_of(secret, {role, bytes_, nonce_}); };
  if (!same_secret(frame.body, expected(proof_of_rank))) {
    const std::string address = address_text(options.address, options.port);
    return {FrameType::refused,
            ConfigError("coordination",
                        str("all processes that connect to ", address, " must have one secret"),
                        str("another one from ", who()),
                        "give all of them the same TESSERA_SECRET_FILE or TESSERA_SECRET")
                .what(),
            std::nullopt, str("[coordination] refused ", who(), ": it has another secret")};
  }
  const std::string refused = refusal_of(hello_, options, present, own_);
  if (!refused.empty()) return {FrameType::refused, refused};
  return {FrameType::accepted, expected(proof_of_hub), control_keys(secret, bytes_, nonce_, true)};
}

std::string PeerHandshake::who() const {
  return str(one_line(hello_.peer.describe()), " at ", address_);
}

}  // namespace tessera::detail
