#pragma once

#include <functional>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/optimizer/optimizer_options.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// One number for each of several values that are sharded over the same mesh dimensions.
struct ValueSet {
  std::vector<size_t> members;  ///< indices of the values
  DTensor numbers;              ///< one element per value, float64, replicated
};

/// Returns the sums of squares of values, none of which is a partial sum. Collective: one
/// all-reduce for each set of mesh dimensions over which some values are sharded. Does not wait for
/// GPUs.
std::vector<ValueSet> squared_norms(const std::vector<DTensor>& values);

/// Sums of squares of some values and of their steps: float64 vectors on one device.
struct StepNorms {
  std::vector<size_t> members;  ///< indices of the values
  at::Tensor values, steps;
};

/// Subtracts from each value, in place, its step times a factor; a step has the blocks of its
/// value. factors(norms) returns the factors of norms.members, on the norms' device. Collective
/// like squared_norms().
void subtract_scaled(const std::vector<DTensor>& values, const std::vector<DTensor>& steps,
                     const std::function<at::Tensor(const StepNorms& norms)>& factors);

/// Whether all elements of values on CPUs, none of which is a partial sum, are finite. Collective
/// like squared_norms().
bool all_finite(const std::vector<DTensor>& values);

/// Returns, on the GPU of each of `blocks`, a float32 1 if any element of the values is not finite,
/// else 0. Collective like squared_norms(); does not wait for GPUs.
ScalarOnDevices non_finite_on_gpus(const std::vector<DTensor>& values, const Blocks& blocks);

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
