#include <tessera/framework/nn/activations/activation_functions.hpp>

namespace tessera::activations {

DTensor elu(const DTensor& x, double alpha) { return ops::elu(x, alpha); }
DTensor exponential(const DTensor& x) { return ops::exp(x); }
DTensor gelu(const DTensor& x, bool approximate) { return ops::gelu(x, approximate); }

DTensor linear(const DTensor& x) { return x; }

DTensor relu(const DTensor& x, double negative_slope, std::optional<double> max_value,
             double threshold) {
  if (threshold == 0 && !max_value) {
    return negative_slope == 0 ? ops::relu(x) : ops::leaky_relu(x, negative_slope);
  }
  DTensor y = threshold != 0   ? ops::threshold(x, threshold, 0)
              : max_value == 6 ? ops::relu6(x)
                               : ops::relu(x);
  if (max_value && !(threshold == 0 && max_value == 6)) y = ops::clip(y, 0, *max_value);
  if (negative_slope == 0) return y;
  const DTensor below = threshold != 0 ? ops::neg(x) + threshold : ops::neg(x);
  return y - ops::relu(below) * negative_slope;
}

}  // namespace tessera::activations
