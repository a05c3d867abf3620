#pragma once

#include <memory>

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A device of Gloo's whose pairs listen on loopback alone.
std::shared_ptr<gloo::transport::tcp::Device> gloo_device();

/// Makes a pair of Gloo's that goes on over a connection which is there already. By itself a pair
/// takes the first that connects to its port for its peer, whoever that is, and ends the process by
/// what it cannot read. So it connects with this process alone, where nobody is told of it, and its
/// end is replaced. Throws CommError.
void hand_over(gloo::transport::Context& context, int peer, gloo::transport::tcp::Device& device,
               const FileDescriptor& connection);

}  // namespace tessera::detail
