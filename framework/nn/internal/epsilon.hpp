#pragma once

namespace tessera::detail {

/// What keeps a divisor from 0 and a probability from 0 and 1 (keras.backend.epsilon).
constexpr double keras_epsilon = 1e-7;

}  // namespace tessera::detail
