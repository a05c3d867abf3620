#pragma once

#include <cstdint>
#include <type_traits>

#include <tessera/framework/ops/internal/vectorized.hpp>

namespace tessera::detail {

/// The activation that an operation applies to its own result.
enum class FusedActivation : uint8_t { none, relu, relu6 };

template <FusedActivation A>
using ActivationConstant = std::integral_constant<FusedActivation, A>;

/// Calls `run` with the ActivationConstant of an activation.
template <class F>
auto for_activation(FusedActivation activation, const F& run) {
  if (activation == FusedActivation::relu) return run(ActivationConstant<FusedActivation::relu>());
  if (activation == FusedActivation::relu6) {
    return run(ActivationConstant<FusedActivation::relu6>());
  }
  return run(ActivationConstant<FusedActivation::none>());
}

/// Returns the activation of a value, in vectorized loops.
template <FusedActivation A, class T>
TESSERA_VECTORIZED T activated(T value) {
  if constexpr (A == FusedActivation::none) return value;
  const T positive = value < 0 ? T(0) : value;
  if constexpr (A == FusedActivation::relu) return positive;
  return positive > 6 ? T(6) : positive;
}

}  // namespace tessera::detail
