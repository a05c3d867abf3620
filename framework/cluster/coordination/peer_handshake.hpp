#pragma once

#include <optional>
#include <span>
#include <string>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {

/// Returns the keys of a connection between a rank and rank 0, as the side that `is_hub` sees them.
/// `hello`: the body of the rank's hello, which includes its nonce; `nonce`: rank 0's.
SessionKeys control_keys(const std::string& secret, const std::string& hello,
                         const std::string& nonce, bool is_hub);

/// Rank 0's reply to a frame of a peer that it has not admitted.
struct HandshakeReply {
  FrameType type = FrameType::refused;  ///< challenge, accepted or refused
  std::string body = {};
  /// keys of the connection, if the peer is accepted and the run has a secret
  std::optional<SessionKeys> keys = {};
  /// line for rank 0's output, if the peer is refused as it has another secret or none is expected
  std::string warning = {};
};

/// Rank 0's side of the registration of one peer: its hello and, if the run has a secret, its
/// proof. Sends nothing and admits nobody by itself.
class PeerHandshake {
 public:
  /// `own`: whether the peer uses rank 0's own connection; `address`: the peer's IP address.
  PeerHandshake(bool own, std::string address) : own_(own), address_(std::move(address)) {}

  /// Returns the reply to the peer's next frame. `present`: the ranks admitted so far. Throws
  /// BadFrame for a frame that no process sends here.
  HandshakeReply reply_to(const Frame& frame, const CoordinationOptions& options,
                          std::span<const std::optional<Peer>> present);
  bool own() const { return own_; }
  /// Returns the process that sent the hello.
  const Peer& peer() const { return hello_.peer; }

 private:
  HandshakeReply reply_to_hello(const CoordinationOptions& options,
                                std::span<const std::optional<Peer>> present);
  HandshakeReply reply_to_proof(const Frame& frame, const CoordinationOptions& options,
                                std::span<const std::optional<Peer>> present) const;
  std::string who() const;

  bool own_;
  std::string address_;
  std::string bytes_;  ///< body of the hello; empty: none received
  Hello hello_;
  std::string nonce_;  ///< nonce of the challenge
};

}  // namespace tessera::detail
