#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// A tensor of this form whose blocks come from a file: `read` gives the elements of an interval
/// for each axis, on the host, once for what lies here several times.
DTensor read_blocks(const ShardingPtr& form,
                    const std::function<at::Tensor(const std::vector<Interval>&)>& read);

}  // namespace tessera::detail
