#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Casts the inputs to one dtype: the compute dtype if any is floating, otherwise the widest.
Inputs with_one_dtype(Inputs inputs, at::ScalarType compute);

}  // namespace tessera::detail
