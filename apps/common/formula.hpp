#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera::app {

// Data and weights from integer arithmetic, which a program in another language computes equally:
// tests/golden/make_keras_examples.py does.

/// Returns float32 numbers in [0, 1). Each is a hash of its index and `seed`.
at::Tensor hashed_numbers(const Shape& shape, int64_t seed);

/// Returns int64 numbers in [0, count).
at::Tensor hashed_integers(const Shape& shape, int64_t seed, int64_t count);

/// Sets every weight of rank 2 or more of a built model to hashed numbers of the spread that
/// Glorot's initializer has; others keep their values. Collective.
void set_hashed_weights(const ModelHandle& model);

/// Returns a noisy picture (28, 28, 1) for each class id in [0, 10): the class' own pattern of
/// squares, which plays the part of a digit. float32 in [0, 1).
at::Tensor hashed_digits(const at::Tensor& classes, int64_t seed);

/// Returns pictures (rows, size, size, 1) that are 1 in a rectangle and 0 elsewhere: float32.
at::Tensor hashed_rectangles(int64_t rows, int64_t size, int64_t seed);

}  // namespace tessera::app
