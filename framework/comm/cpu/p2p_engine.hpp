#pragma once

#include <memory>

#include <tessera/framework/comm/cpu/transport.hpp>
#include <tessera/framework/comm/internal/engine.hpp>

namespace tessera::detail {

/// An engine whose ranks exchange CPU tensors over `channel`, all with all: members of one rank are
/// joined first. Sums are the same bits on every rank.
std::shared_ptr<Engine> channel_engine(std::unique_ptr<Transport> channel);

}  // namespace tessera::detail
