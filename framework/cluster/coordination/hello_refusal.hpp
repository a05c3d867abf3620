#pragma once

#include <optional>
#include <span>
#include <string>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {

/// Why rank 0 refuses who says this of itself, given those who are there by their ranks; empty if
/// it does not. `own`: it is rank 0's own process that says so.
std::string refusal_of(const Hello& hello, const CoordinationOptions& options,
                       std::span<const std::optional<Peer>> present, bool own);

}  // namespace tessera::detail
