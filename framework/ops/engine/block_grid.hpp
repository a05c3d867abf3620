#pragma once

#include <vector>

#include <c10/core/Device.h>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// All blocks of an operation that this process computes, and where they lie among those of others.
struct BlockGrid {
  const Specs& specs;                             ///< of the inputs
  const std::vector<Layout>& layouts;             ///< of the inputs, as they have been brought
  const Groups& groups;                           ///< of all blocks
  std::vector<LocalArgs> blocks = {};             ///< of this process; some may be empty
  std::vector<std::vector<int64_t>> places = {};  ///< group of each along every mesh dimension
  std::vector<c10::Device> devices = {};          ///< where each is computed
  bool parallel = false;                          ///< as run_blocks() is told
};

}  // namespace tessera::detail
