#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

/// Fused gradients of elementwise functions, which are operations themselves.
namespace tessera::detail {

/// dy where y > 0, else 0.
DTensor relu_grad(const DTensor& dy, const DTensor& y);
/// dy (1 - y²).
DTensor tanh_grad(const DTensor& dy, const DTensor& y);
/// dy y (1 - y).
DTensor sigmoid_grad(const DTensor& dy, const DTensor& y);
/// dy where lo <= x <= hi, else 0.
DTensor clip_grad(const DTensor& dy, const DTensor& x, double lo, double hi);

}  // namespace tessera::detail
