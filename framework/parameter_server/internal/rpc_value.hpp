#pragma once

#include <rpc/parameter_server.pb.h>

#include <string>

#include <tessera/framework/parameter_server/closure.hpp>

namespace tessera::detail {

/// Maximum size of a message between coordinator and workers.
inline constexpr int64_t max_message_bytes = 64 << 20;

/// Converts a closure's value to a message. Throws ConfigError naming `where` for an unsupported
/// dtype or more than max_message_bytes.
rpc::Value to_message(const strategy::ClosureValue& value, const std::string& where);

/// Converts a message to a value, copying its data. Throws ConfigError naming `where` for an
/// invalid message.
strategy::ClosureValue from_message(const rpc::Value& message, const std::string& where);

}  // namespace tessera::detail
