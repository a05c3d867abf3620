#pragma once

#include <optional>
#include <utility>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Sums data by segment: data (i…, d…), ids (i…) of an integer dtype -> (count, d…), whose row k is
/// the sum of the data with id k (keras.ops.segment_sum; ids need not be sorted). Segments without
/// data are 0. Axes d… keep their sharding; sharded axes i… leave a partial sum. float16 and
/// bfloat16 are summed in float32 and rounded once. Throws ShapeError unless the shape of data
/// begins with that of the ids, ConfigError for bool data and an id outside [0, count).
DTensor segment_sum(const DTensor& data, const DTensor& ids, int64_t count);

/// Returns the largest or smallest data of each segment (keras.ops.segment_max and segment_min).
/// Shapes, layouts and errors are those of segment_sum; sharded axes i… leave a partial max or min.
/// A segment without data is -inf in segment_max and inf in segment_min, as in Keras on JAX, and
/// the lowest and highest number of an integer dtype. Elements tied for the extreme share the
/// gradient equally.
DTensor segment_max(const DTensor& data, const DTensor& ids, int64_t count);
DTensor segment_min(const DTensor& data, const DTensor& ids, int64_t count);

/// Counts the elements of each value: x (n,) or (b, n) of an integer dtype -> (length,) or
/// (b, length), int32; or sums their `weights`, which have x's shape (keras.ops.bincount). Keras'
/// result is as long as the largest value demands, at least `minlength`; here `length` is given, as
/// shapes do not depend on values. Layouts are those of segment_sum. Throws ShapeError for another
/// rank, ConfigError for a value outside [0, length).
DTensor bincount(const DTensor& x, int64_t length, const DTensor& weights = {});

/// Range of the values that histogram() counts.
using HistogramRange = std::optional<std::pair<double, double>>;

/// Returns how many elements of x are in each of `bins` equal intervals, in x's dtype, and the
/// bins + 1 edges of the intervals, which include their lower edge, and the last one its upper edge
/// (keras.ops.histogram). The default range is that of x. Values outside the range and NaN are not
/// counted. Sharded axes leave a partial sum of the counts. No gradient. Throws ConfigError unless
/// x is floating-point and bins at least 1.
std::pair<DTensor, DTensor> histogram(const DTensor& x, int64_t bins = 10,
                                      const HistogramRange& range = {});

}  // namespace tessera::ops
