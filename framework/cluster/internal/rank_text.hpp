#pragma once

#include <span>
#include <string>

namespace tessera::detail {

/// Formats ascending ranks: "rank 2", "ranks 0 and 1" or "ranks 0, 2-4 and 7".
std::string rank_names(std::span<const int> ranks);

}  // namespace tessera::detail
