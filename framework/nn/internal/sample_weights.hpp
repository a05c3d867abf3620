#pragma once

#include <string>
#include <utility>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Two tensors whose ranks differ by one, made alike: a last axis of extent 1 is dropped from the
/// longer one, or added to a vector (Keras' squeeze_or_expand_to_same_rank). Others stay.
std::pair<DTensor, DTensor> match_ranks(DTensor a, DTensor b);

/// What losses of these predictions are computed in: float64 of float64 ones, else float32.
at::ScalarType loss_dtype(const DTensor& predictions);

/// Sample weights times a mask, in `dtype`; either may be undefined, and is the other then (Keras'
/// apply_mask). Throws ShapeError naming `where` unless the weights broadcast to the mask.
DTensor masked_weights(const std::string& where, const DTensor& sample_weight, const DTensor& mask,
                       at::ScalarType dtype);

/// Throws ShapeError naming `where` unless sample weights of this shape broadcast to values.
void check_weights(const char* where, const Shape& values, const Shape& weights);

/// Throws ShapeError naming `where` unless a mask of this shape, in which sample weights may be,
/// and values broadcast together.
void check_mask(const char* where, const Shape& values, const Shape& mask);

/// Throws ShapeError naming `where` unless predictions have an axis and labels broadcast with them.
void check_labels(const std::string& where, const Shape& labels, const Shape& predictions);

}  // namespace tessera::detail
