#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

/// Functions shared by the losses of probabilities.
namespace tessera::detail {

/// Returns 1 - x.
DTensor one_less(const DTensor& x);
/// Clips to [1e-7, 1 - 1e-7].
DTensor clip_probabilities(const DTensor& p);

/// Returns y (1 - smoothing) + smoothing / classes.
DTensor smoothed(const DTensor& labels, double smoothing, int64_t classes);

/// Returns -y log p - (1 - y) log(1 - p), elementwise, where p are the clipped predictions or the
/// sigmoid of logits.
DTensor binary_entropy(const DTensor& labels, const DTensor& y_pred, bool from_logits);

/// Throws ConfigError unless 0 <= smoothing <= 1.
void check_smoothing(const std::string& name, double smoothing);
/// Throws ShapeError unless the shapes are equal.
void check_same_shape(const std::string& name, const DTensor& y_true, const DTensor& y_pred);

}  // namespace tessera::detail
