#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

/// What the losses of probabilities share.
namespace tessera::detail {

/// 1 - x.
DTensor one_less(const DTensor& x);
/// Cut to [1e-7, 1 - 1e-7].
DTensor clip_probabilities(const DTensor& p);

/// y (1 - smoothing) + smoothing / classes.
DTensor smoothed(const DTensor& labels, double smoothing, int64_t classes);

/// -y log p - (1 - y) log(1 - p), elementwise, p the clipped predictions or their sigmoid.
DTensor binary_entropy(const DTensor& labels, const DTensor& y_pred, bool from_logits);

/// Throws ConfigError unless 0 <= smoothing <= 1.
void check_smoothing(const std::string& name, double smoothing);
/// Throws ShapeError unless both have one shape.
void check_same_shape(const std::string& name, const DTensor& y_true, const DTensor& y_pred);

}  // namespace tessera::detail
