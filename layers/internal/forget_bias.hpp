#pragma once

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera::detail {

/// Returns an initializer of an LSTM's bias, (4 · units): that of another one, with ones in the
/// second quarter, the forget gate's (Keras' unit_forget_bias).
InitializerHandle forget_bias(const InitializerHandle& initializer);

}  // namespace tessera::detail
