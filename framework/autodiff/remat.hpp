#pragma once

#include <utility>

#include <tessera/framework/autodiff/internal/remat_region.hpp>
#include <tessera/framework/mesh/remat_rule.hpp>

namespace tessera {

/// Returns a function that calls `function` and whose inner values no tape saves: the backward pass
/// computes them again, operation by operation, where a gradient reads them (keras.remat,
/// jax.checkpoint). The function's code runs once, so what it assigns, counts or adds as a loss
/// happens once, and the gradients are the same to the bit.
///
///     const auto gated = remat([](const DTensor& x) { return ops::tanh(x * 2.0) * x; });
///
/// Throws ConfigError for an operation of the policy that does not exist.
template <class F>
auto remat(F function, const RematPolicy& policy = {}) {
  return [function = std::move(function),
          saved = detail::SavedOps(policy)](auto&&... arguments) mutable {
    const detail::RematRegionScope region(saved);
    return function(std::forward<decltype(arguments)>(arguments)...);
  };
}

}  // namespace tessera
