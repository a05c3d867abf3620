#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Sums of the data by number: data (i…), ids (i…) of an integer dtype -> (count,), element k the
/// sum of the data whose id is k (keras.ops.segment_sum, of any rank). Shards leave a sum pending.
/// Throws ShapeError unless both are of one shape, ConfigError for an id outside [0, count).
DTensor segment_sum(const DTensor& data, const DTensor& ids, int64_t count);

}  // namespace tessera::ops
