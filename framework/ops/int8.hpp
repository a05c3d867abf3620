#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Returns the factors that map x to the integers from -127 to 127: 127 / (max |x| + 1e-7) over
/// `axes`, which have extent 1 in the result. Nothing is differentiated. Communication: one
/// all-reduce of maxima if an axis of `axes` is sharded. Throws ConfigError for an integer x.
DTensor abs_max_scale(const DTensor& x, const std::vector<int64_t>& axes);

/// Returns x in int8, round(x · scale), and the scale, abs_max_scale(x, axes)
/// (keras.quantizers.abs_max_quantize). Halves are rounded to even numbers.
std::pair<DTensor, DTensor> abs_max_quantize(const DTensor& x, const std::vector<int64_t>& axes);

/// Einstein summation of integers: of round(x · x_scale), from -127 to 127, and an int8 kernel, as
/// in "bk,kn->bn". `x_scale` has x's shape, with extent 1 where x's letter is not in the output, as
/// abs_max_scale() returns it. Computed exactly: the result, whose values are integers, is float32
/// if these can hold any sum of the summed extent, else float64. The gradient of x is that of
/// x · x_scale, as if nothing were rounded (keras.layers.Dense in int8); the other inputs have
/// none. Letters of the output keep their sharding; a sharded summed letter leaves a partial sum.
/// Throws ShapeError for an equation or shapes that do not fit, ConfigError for other dtypes.
DTensor int8_einsum(const std::string& equation, const DTensor& x, const DTensor& x_scale,
                    const DTensor& kernel);

}  // namespace tessera::ops
