#pragma once

#include <vector>

#include <c10/core/Device.h>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// This process's blocks of an operation, and their positions in the global grid.
struct BlockGrid {
  const Specs& specs;                  ///< inputs' global shapes and dtypes
  const std::vector<Layout>& layouts;  ///< inputs' layouts, after relayout
  const Groups& groups;                ///< number of groups along each mesh dimension
  std::vector<LocalArgs> blocks = {};  ///< local blocks; some may be empty
  std::vector<std::vector<int64_t>> block_groups = {};  ///< each block's group per mesh dimension
  std::vector<c10::Device> devices = {};                ///< each block's device
  bool parallel = false;                                ///< argument of run_blocks()
};

}  // namespace tessera::detail
