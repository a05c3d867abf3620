#pragma once

#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Throws ConfigError naming the layer unless `given` is one of Keras' output modes `known`, or
/// `sparse` is true.
void check_output_mode(const std::string& where, const std::string& given,
                       const std::vector<std::string>& known, bool sparse);

/// The shape of what numbers of categories become: in "int" mode themselves; in "one_hot" mode a
/// row of `depth` for each of them, in place of a last axis of extent 1; in "multi_hot" and "count"
/// mode one row for all of the last axis. Throws ShapeError naming the layer for a shape that the
/// mode does not take.
Shape encoded_shape(const std::string& where, const Shape& numbers, const std::string& mode,
                    int64_t depth);
/// What whole numbers become, in a dtype; those outside [0, depth) are left out of rows. "count"
/// adds up `weights` of the numbers' shape if there are any.
DTensor encoded(const DTensor& numbers, const std::string& mode, int64_t depth,
                at::ScalarType dtype, const DTensor& weights = {});

/// The same of numbers on the host, int64.
at::Tensor encoded(const at::Tensor& numbers, const std::string& mode, int64_t depth,
                   at::ScalarType dtype);

/// Numbers of any dtype as int64, without what follows the point.
DTensor as_whole(const DTensor& x);

}  // namespace tessera::detail
