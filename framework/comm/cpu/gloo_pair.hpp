#pragma once

#include <memory>

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// Returns a Gloo device whose pairs listen on loopback only.
std::shared_ptr<gloo::transport::tcp::Device> gloo_device();

/// Creates a Gloo pair that uses an existing connection. A pair by itself accepts whoever first
/// connects to its port as its peer, and ends the process on invalid input. So the pair connects to
/// this process, on a port that nobody else is told, and its socket is then replaced by
/// `connection`. Throws CommError.
void create_connected_pair(gloo::transport::Context& context, int peer,
                           gloo::transport::tcp::Device& device, const FileDescriptor& connection);

}  // namespace tessera::detail
