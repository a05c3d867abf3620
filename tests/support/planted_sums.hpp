#pragma once

#include <tessera/framework/comm/internal/communicator.hpp>

#include <cstdint>
#include <memory>

namespace tessera::test {

using namespace detail;

/// Orders of addition other than the tree's that groups in tree order ask for.
enum class PlantedSums : uint8_t {
  by_rank,   ///< each rank's inputs one by one, then the ranks' sums one by one
  by_chunk,  ///< all inputs of a rank as if they were one subtree, then the ranks' sums by a tree
};

/// Wraps a communicator so that its reductions between ranks are in this order.
std::shared_ptr<Communicator> planted_sums(std::shared_ptr<Communicator> inner, PlantedSums order);

}  // namespace tessera::test
