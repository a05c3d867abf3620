#pragma once

namespace tessera::detail {

/// Keeps divisors away from 0 and probabilities away from 0 and 1 (keras.backend.epsilon).
constexpr double keras_epsilon = 1e-7;

}  // namespace tessera::detail
