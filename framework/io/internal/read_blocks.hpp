#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns a tensor of this sharding with blocks read from a file. `read` returns the elements of
/// one interval for each axis, on the host; it is called once for replicas on this process.
DTensor read_blocks(const ShardingPtr& sharding,
                    const std::function<at::Tensor(const std::vector<Interval>&)>& read);

}  // namespace tessera::detail
