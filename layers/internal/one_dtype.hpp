#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The inputs in one dtype: the compute dtype if any is floating, else the widest.
Inputs with_one_dtype(Inputs inputs, at::ScalarType compute);

}  // namespace tessera::detail
