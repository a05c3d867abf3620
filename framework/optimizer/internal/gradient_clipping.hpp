#pragma once

#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/optimizer/optimizer_options.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Multiplies each block by the factor on its device.
std::vector<DTensor> scaled(const std::vector<DTensor>& values, const ScalarOnDevices& factors);
/// Multiplies the values by a factor; returns them unchanged if it is 1.
std::vector<DTensor> scaled(const std::vector<DTensor>& values, double factor);

/// Whether any clipping option is set.
inline bool clips(const BaseOptions& options) {
  return options.clipnorm || options.global_clipnorm || options.clipvalue;
}
/// Clips gradients: clipnorm bounds the norm of each, global_clipnorm the norm of all together,
/// clipvalue every element. If the global norm is not finite, the results are NaN, as in Keras.
/// Collective like squared_norms() for the norms. Returns the gradients if no clipping is set.
std::vector<DTensor> clip_gradients(const std::vector<DTensor>& gradients,
                                    const BaseOptions& options);

}  // namespace tessera::detail
