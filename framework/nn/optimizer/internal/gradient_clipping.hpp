#pragma once

#include <vector>

#include <tessera/framework/nn/optimizer/optimizer_options.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Sums of squares of whole values, none of which is pending. Collective: one all-reduce for each
/// mesh and set of its dimensions that cut some of them. 0 for values of which nothing is here.
std::vector<double> squared_norms(const std::vector<DTensor>& values);

/// Whether every element of whole values, none of which is pending, is finite. Collective as
/// squared_norms().
bool all_finite(const std::vector<DTensor>& values);

/// Every value times its factor; those whose factor is 1 as they are.
std::vector<DTensor> scaled(const std::vector<DTensor>& values, const std::vector<double>& factors);

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
