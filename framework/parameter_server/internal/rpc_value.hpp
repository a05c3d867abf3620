#pragma once

#include <rpc/parameter_server.pb.h>

#include <string>

#include <tessera/framework/parameter_server/closure.hpp>

namespace tessera::detail {

/// Largest message between coordinator and workers.
inline constexpr int64_t max_message_bytes = 64 << 20;

/// A closure's value as a message. Throws ConfigError beginning with `where` for a dtype that
/// cannot be sent, or more than max_message_bytes.
rpc::Value to_message(const strategy::ClosureValue& value, const std::string& where);

/// The value that a message holds, as a copy. Throws ConfigError beginning with `where` for a
/// message that makes no sense.
strategy::ClosureValue from_message(const rpc::Value& message, const std::string& where);

}  // namespace tessera::detail
