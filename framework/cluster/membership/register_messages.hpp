#pragma once

#include <string>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/membership/generation.hpp>

namespace tessera::detail {

/// A message between a member and the launcher's register, in a frame of type `members`. Each one
/// names the generation that its sender is in.
struct RegisterMessage {
  enum class Kind {
    join,        ///< to the register: the newcomer
    alive,       ///< to the register: a sign of life
    leave,       ///< to the register: wants a generation without itself
    lost,        ///< to the register: another member is lost, and why
    finish,      ///< to the register: the run is complete
    membership,  ///< from the register: the newest membership
    refused,     ///< from the register: why it refuses the newcomer
    expelled,    ///< from the register: the process is no member any more, and why
  };
  Kind kind = Kind::alive;
  uint64_t generation = 0;
  std::string id = {};         ///< who is lost
  std::string reason = {};     ///< in lost, refused and expelled
  Member member = {};          ///< who joins
  Membership membership = {};  ///< what the register says
};

std::string encode_message(const RegisterMessage& message);
/// Throws BadFrame unless `body` is a message.
RegisterMessage decode_message(const std::string& body);

/// Maximum size of a message to the register, and of one from it.
inline constexpr size_t max_member_bytes = size_t{64} << 10;
inline constexpr size_t max_membership_bytes = size_t{32} << 20;

/// Returns how members and register prove to each other that they know the job's secret: by the
/// handshake of a run in which the register is rank 0 and everybody else rank 1.
CoordinationOptions register_handshake(const std::string& job, const JobAccess& access,
                                       const std::string& address, int port);

}  // namespace tessera::detail
