#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::test {

/// The result of a rank.
struct RankOutcome {
  std::string error;  ///< text of the Error that it threw
  std::string noted;  ///< its failure as recorded for the other ranks
  std::vector<std::pair<int64_t, uint64_t>>
      steps;          ///< begun steps: number and signature of the batch
  int64_t calls = 0;  ///< number of collectives that it began
};

/// Runs ranks on a mesh {"batch": 4} until each returns or throws an Error.
std::vector<RankOutcome> rank_outcomes(int ranks,
                                       const std::function<void(int rank, const Mesh& mesh)>& work);

}  // namespace tessera::test
