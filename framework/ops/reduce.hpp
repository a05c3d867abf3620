#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Axes to reduce; empty: all. May be negative.
using Axes = std::vector<int64_t>;

/// Reductions over axes, which stay with extent 1 if `keepdims`. Other axes keep their sharding;
/// a sharded reduced axis leaves a reduction pending over its mesh dimensions (sum; max or min;
/// all and any as min and max), except for prod, which gathers it first. max, min, mean and moments
/// of nothing throw ShapeError.
DTensor sum(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor mean(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor max(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor min(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor prod(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor all(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor any(const DTensor& x, const Axes& axes = {}, bool keepdims = false);

/// Index (int64) of the largest or smallest element along an axis, the first of equals. A sharded
/// axis costs a pending max, then a pending min of the index.
DTensor argmax(const DTensor& x, int64_t axis = -1);
DTensor argmin(const DTensor& x, int64_t axis = -1);

/// The k largest elements of the last axis, the largest first, and their places (int64): both (…,
/// k). Of equal ones the first comes first; NaN is the largest (keras.ops.top_k). A sharded last
/// axis is gathered; the others keep their sharding. The gradient is the values', in x's shards.
/// Throws ShapeError unless k lies in [1, extent of the last axis].
std::pair<DTensor, DTensor> top_k(const DTensor& x, int64_t k);

/// Sums of the elements along an axis up to each one, of x's shape and dtype: with `exclusive`
/// without the element itself, from 0; with `reverse` from the end (tf.cumsum; keras.ops.cumsum has
/// neither). Half types are summed in float32. A sharded axis is gathered; the others keep their
/// sharding, and pending sums stay. Throws ConfigError for truth values.
DTensor cumsum(const DTensor& x, int64_t axis, bool exclusive = false, bool reverse = false);

/// log(sum(exp(x))), stable: over shards a pending max, then a pending sum.
DTensor logsumexp(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
/// Mean, and mean of squared deviations from it (biased variance); never E[x²] − E[x]².
std::pair<DTensor, DTensor> moments(const DTensor& x, const Axes& axes = {}, bool keepdims = false);
DTensor variance(const DTensor& x, const Axes& axes = {}, bool keepdims = false);

/// Number of elements reduced into one.
int64_t reduced_count(const Shape& shape, const Axes& axes);

}  // namespace tessera::ops
