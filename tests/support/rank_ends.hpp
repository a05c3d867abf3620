#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::test {

/// What a rank came to.
struct RankOutcome {
  std::string error;                                ///< text of the Error that it threw
  std::string noted;                                ///< for the others to read
  std::vector<std::pair<int64_t, uint64_t>> steps;  ///< begun: number and form of the batch
  int64_t calls = 0;                                ///< of collectives that it began
};

/// Lets ranks work on a mesh {"batch": 4} until each returns or throws an Error.
std::vector<RankOutcome> rank_ends(int ranks,
                                   const std::function<void(int rank, const Mesh& mesh)>& work);

}  // namespace tessera::test
