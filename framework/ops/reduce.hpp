#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Axes to reduce (empty: all); negative ones count from the end.
using Axes = std::vector<int64_t>;

/// Reductions over axes, which are kept with extent 1 if `keepdims`. Other axes keep their
/// sharding; a sharded reduced axis leaves a partial sum, max or min over its mesh dimensions (all
/// and any a partial min and max); prod all-gathers it first. sum, mean and moments of float16 and
/// bfloat16 are summed in float32 and rounded once, so over a sharded axis they are all-reduced, in
/// float32. sum and prod of bool and of integers below 32 bits are int32, as in keras.ops. max,
/// min, mean and moments over an empty axis throw ShapeError.
DTensor sum(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor mean(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor max(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor min(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor prod(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor all(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor any(const DTensor& x, const Axes& axes = {}, bool keepdims = false);

/// Index (int64) of the largest or smallest element along an axis, the first one on ties. A sharded
/// axis costs an all-reduce of the extreme value and leaves a partial min of the index.
DTensor argmax(const DTensor& x, int64_t axis = -1);
DTensor argmin(const DTensor& x, int64_t axis = -1);

/// Returns the k largest elements of the last axis in descending order, and their indices (int64),
/// both (…, k). Equal elements keep their order; NaN counts as the largest (keras.ops.top_k). A
/// sharded last axis is all-gathered; the others keep their sharding. Only the values have a
/// gradient, which is sharded like x. Throws ShapeError unless k is in [1, extent of the last
/// axis].
std::pair<DTensor, DTensor> top_k(const DTensor& x, int64_t k);

/// Returns the cumulative sums along an axis, in x's shape and dtype (int32 for bool, as in
/// keras.ops). `exclusive` leaves out the element itself, so the first sum is 0; `reverse` sums
/// from the end (tf.cumsum; keras.ops.cumsum has neither). float16 and bfloat16 are summed in
/// float32. A sharded `axis` is all-gathered; the others keep their sharding, and partial sums pass
/// through.
DTensor cumsum(const DTensor& x, int64_t axis, bool exclusive = false, bool reverse = false);

/// Returns the cumulative products along an axis, in x's shape and dtype (int32 for bool), for
/// float16 and bfloat16 in float32 (keras.ops.cumprod). A sharded `axis` is all-gathered; the
/// others keep their sharding. The gradient is correct where elements are 0.
DTensor cumprod(const DTensor& x, int64_t axis);

/// Returns the elements along an axis in ascending order (sort), or their indices in x, int64
/// (argsort) (keras.ops.sort, keras.ops.argsort). Equal elements keep their order; NaN is last. A
/// sharded `axis` is all-gathered; the others keep their sharding. Only sort has a gradient, which
/// is sharded like x.
DTensor sort(const DTensor& x, int64_t axis = -1);
DTensor argsort(const DTensor& x, int64_t axis = -1);

/// log(sum(exp(x))), computed stably, for float16 and bfloat16 in float32. A sharded axis costs an
/// all-reduce of the max and one of the sum.
DTensor logsumexp(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
/// Mean and biased variance, the latter as the mean of squared deviations, not as E[x²] − E[x]².
std::pair<DTensor, DTensor> moments(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor variance(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
/// The square root of the variance (keras.ops.std).
DTensor std(const DTensor& x, const Axes& axes = {}, bool keepdims = false);

/// Reductions and scans that leave out NaN (keras.ops.nansum and so on). Shapes, dtypes, layouts
/// and errors are those of the functions without "nan". Where all elements are NaN, nansum is 0,
/// nanprod 1, and the others NaN; their gradient is 0 wherever x is NaN.
DTensor nansum(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor nanmean(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor nanmax(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor nanmin(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor nanprod(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor nanvar(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor nanstd(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor nancumsum(const DTensor& x, int64_t axis);
DTensor nancumprod(const DTensor& x, int64_t axis);

/// Returns the mean of x weighted by `weights`, which have x's shape or, for one axis, one number
/// for each of its elements (keras.ops.average). Layouts are those of sum. Throws ShapeError for
/// other weights.
DTensor average(const DTensor& x, const Axes& axes = {}, const DTensor& weights = {});
/// Returns how many elements are not 0, int32 (keras.ops.count_nonzero). Layouts are those of sum.
DTensor count_nonzero(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
/// Returns max(x) - min(x) (keras.ops.ptp).
DTensor ptp(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
/// Returns whether fewer than k predictions of a row are larger than that of its target: targets
/// (…) of an integer dtype, predictions (…, c) -> (…), bool (keras.ops.in_top_k). Layouts and
/// errors are those of top_k and take_along_axis.
DTensor in_top_k(const DTensor& targets, const DTensor& predictions, int64_t k);

/// Returns the differences of consecutive elements along an axis, n times over; of bools, whether
/// they differ (keras.ops.diff). Shards of the axis fetch the element that they lack. Throws
/// ConfigError for a negative n.
DTensor diff(const DTensor& x, int64_t n = 1, int64_t axis = -1);
/// Integrates y along an axis by the trapezoidal rule, at points at distances dx, or at x, which
/// has y's shape or is a vector (keras.ops.trapezoid). Layouts are those of diff and sum.
DTensor trapezoid(const DTensor& y, double dx = 1, int64_t axis = -1);
DTensor trapezoid(const DTensor& y, const DTensor& x, int64_t axis = -1);

/// Returns the number of elements that are reduced into one.
int64_t reduced_count(const Shape& shape, const Axes& axes);

}  // namespace tessera::ops
