#pragma once

#include <functional>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/optimizer/optimizer_options.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Numbers of whole values that are cut over the same mesh dimensions.
struct ValueSet {
  std::vector<size_t> members;  ///< which values
  DTensor numbers;              ///< one for each, float64, whole
};

/// Sums of squares of whole values, none of which is pending. Collective: one all-reduce for each
/// mesh and set of its dimensions that cut some of them. Nothing waits for GPUs.
std::vector<ValueSet> squared_norms(const std::vector<DTensor>& values);

/// Sums of squares of some values and of their steps: vectors of float64 on one device.
struct StepNorms {
  std::vector<size_t> members;  ///< which values
  at::Tensor values, steps;
};

/// Subtracts from each value its step times a factor, in place; a step lies in its value's blocks.
/// factors(norms) gives those of norms.members, on their device. Collective as squared_norms().
void subtract_scaled(const std::vector<DTensor>& values, const std::vector<DTensor>& steps,
                     const std::function<at::Tensor(const StepNorms& norms)>& factors);

/// Whether every element of whole values of CPUs, none of which is pending, is finite. Collective
/// as squared_norms().
bool all_finite(const std::vector<DTensor>& values);

/// On each GPU that has one of `places`, whether an element of the values is not finite: 1, else 0,
/// of float32. Collective as squared_norms(); nothing waits.
NumberOnDevices non_finite_on_gpus(const std::vector<DTensor>& values, const Blocks& places);

/// Every value times the number on each block's device.
std::vector<DTensor> scaled(const std::vector<DTensor>& values, const NumberOnDevices& factors);
/// Every value times a factor; as they are if it is 1.
std::vector<DTensor> scaled(const std::vector<DTensor>& values, double factor);

/// Whether options ask for clipping.
inline bool clips(const BaseOptions& options) {
  return options.clipnorm || options.global_clipnorm || options.clipvalue;
}
/// Gradients after the options' clipping: clipnorm bounds the norm of each, global_clipnorm that of
/// all together, clipvalue every element. A global norm that is not finite makes them NaN, as in
/// Keras. Collective as squared_norms() for the norms; no work without clipping.
std::vector<DTensor> clip_gradients(const std::vector<DTensor>& gradients,
                                    const BaseOptions& options);

}  // namespace tessera::detail
