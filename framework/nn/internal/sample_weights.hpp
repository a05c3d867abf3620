#pragma once

#include <string>
#include <utility>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Gives two tensors the same rank if they differ by one last axis of extent 1: squeezes it, or
/// adds it if the other tensor is a vector (Keras' squeeze_or_expand_to_same_rank). Returns other
/// pairs unchanged.
std::pair<DTensor, DTensor> match_ranks(DTensor a, DTensor b);

/// Returns the dtype in which losses are computed: float64 for float64 predictions, else float32.
at::ScalarType loss_dtype(const DTensor& predictions);

/// Returns sample weights times a mask, in `dtype`; if one is undefined, the other (Keras'
/// apply_mask). Throws ShapeError naming `where` unless the weights broadcast to the mask.
DTensor masked_weights(const std::string& where, const DTensor& sample_weight, const DTensor& mask,
                       at::ScalarType dtype);

/// Throws ShapeError naming `where` unless sample weights of this shape broadcast to values.
void check_weights(const char* where, const Shape& values, const Shape& weights);

/// Throws ShapeError naming `where` unless the mask, possibly multiplied by sample weights, and the
/// values broadcast together.
void check_mask(const char* where, const Shape& values, const Shape& mask);

/// Throws ShapeError naming `where` unless predictions have an axis and labels broadcast with them.
void check_labels(const std::string& where, const Shape& labels, const Shape& predictions);

}  // namespace tessera::detail
