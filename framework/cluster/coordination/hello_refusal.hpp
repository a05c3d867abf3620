#pragma once

#include <optional>
#include <span>
#include <string>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {

/// Returns why rank 0 refuses the sender of `hello`; empty if it is admitted. `present`: the ranks
/// admitted so far; `own`: whether the hello came over rank 0's own connection.
std::string refusal_of(const Hello& hello, const CoordinationOptions& options,
                       std::span<const std::optional<Peer>> present, bool own);

}  // namespace tessera::detail
