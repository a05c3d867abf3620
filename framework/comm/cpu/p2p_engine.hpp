#pragma once

#include <memory>

#include <tessera/framework/comm/cpu/transport.hpp>
#include <tessera/framework/comm/internal/engine.hpp>

namespace tessera::detail {

/// Returns an engine that exchanges CPU tensors over `transport`, each rank with all others, after
/// joining the members of each rank. Sums are bitwise equal on every rank.
std::shared_ptr<Engine> make_p2p_engine(std::unique_ptr<Transport> transport);

}  // namespace tessera::detail
