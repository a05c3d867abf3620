#pragma once

#include <string>
#include <utility>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Gives two tensors the same rank if they differ by one last axis of extent 1: squeezes it, or
/// adds it if the other tensor is a vector (Keras' squeeze_or_expand_to_same_rank). Returns other
/// pairs unchanged.
std::pair<DTensor, DTensor> match_ranks(DTensor a, DTensor b);

/// Gives both the same rank, as match_ranks() does, or by axes of extent 1 behind the last one of
/// the lower: a weight per row (n,) becomes (n, 1, …), since the first axis is the batch.
std::pair<DTensor, DTensor> align_ranks(const DTensor& a, const DTensor& b);

/// Returns the dtype in which losses are computed: float64 for float64 predictions, else float32.
at::ScalarType loss_dtype(const DTensor& predictions);

/// Returns sample weights times a mask, in `dtype`; if one is undefined, the other (Keras'
/// apply_mask). Throws ShapeError naming `where` unless the weights fit the mask (check_weights).
DTensor masked_weights(const std::string& where, const DTensor& sample_weight, const DTensor& mask,
                       at::ScalarType dtype);

/// Throws ShapeError naming `where` unless sample weights of this shape, aligned by align_ranks(),
/// broadcast to the values: (n,), (n, t) or (n, t, c) for values (n, t, c), or 1 for an extent.
void check_weights(const std::string& where, const Shape& values, const Shape& weights);

/// Returns sample weights with the rank of the values; throws as check_weights().
DTensor checked_weights(const std::string& where, const Shape& values, const DTensor& weights);

/// Throws ShapeError naming `where` unless the mask, possibly multiplied by sample weights, and the
/// values broadcast together once aligned by align_ranks().
void check_mask(const std::string& where, const Shape& values, const Shape& mask);

/// Throws ShapeError naming `where` unless predictions have an axis and labels fit them: after
/// match_ranks(), ranks and last extents are equal, and the others broadcast.
void check_labels(const std::string& where, const Shape& labels, const Shape& predictions);

}  // namespace tessera::detail
