#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Sums data by segment: data (i…), ids (i…) of an integer dtype -> (count,), whose element k is
/// the sum of the data with id k (keras.ops.segment_sum, for any rank). Sharded inputs leave a
/// partial sum; float16 and bfloat16 are summed in float32 and rounded once. Throws ShapeError
/// unless both have the same shape, ConfigError for an id outside [0, count).
DTensor segment_sum(const DTensor& data, const DTensor& ids, int64_t count);

}  // namespace tessera::ops
