#pragma once

#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Throws ConfigError naming the layer unless `mode` is one of Keras' output modes `known`, or
/// `sparse` is true.
void check_output_mode(const std::string& where, const std::string& mode,
                       const std::vector<std::string>& known, bool sparse);

/// Returns the shape of encoded category numbers: in "int" mode that of `numbers`; in "one_hot"
/// mode with a row of `depth` for each number, which replaces a last axis of extent 1; in
/// "multi_hot" and "count" mode with one row for all of the last axis. Throws ShapeError naming the
/// layer for a shape that the mode does not take.
Shape encoded_shape(const std::string& where, const Shape& numbers, const std::string& mode,
                    int64_t depth);
/// Encodes integers in `dtype`; those outside [0, depth) are ignored. "count" sums `weights` of the
/// numbers' shape, if given.
DTensor encoded(const DTensor& numbers, const std::string& mode, int64_t depth,
                at::ScalarType dtype, const DTensor& weights = {});

/// Encodes int64 numbers on the host.
at::Tensor encoded(const at::Tensor& numbers, const std::string& mode, int64_t depth,
                   at::ScalarType dtype);

/// Truncates numbers of any dtype to int64.
DTensor truncated_to_int64(const DTensor& x);

}  // namespace tessera::detail
