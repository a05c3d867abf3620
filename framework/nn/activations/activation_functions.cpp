#include <tessera/framework/nn/activations/activation_functions.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::activations {

using namespace detail;

DTensor celu(const DTensor& x, double alpha) {
  if (alpha == 0) throw ConfigError("celu", "alpha is not 0", "0", "use relu");
  return ops::elu(x, alpha, alpha);
}

DTensor elu(const DTensor& x, double alpha) { return ops::elu(x, alpha); }
DTensor exponential(const DTensor& x) { return ops::exp(x); }
DTensor gelu(const DTensor& x, bool approximate) { return ops::gelu(x, approximate); }

DTensor glu(const DTensor& x, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "glu");
  if (x.size(a) % 2 != 0) {
    throw ShapeError("glu", str("axis ", axis, " has an even extent"), to_string(x.shape()),
                     "give the layer before it twice the units");
  }
  const int64_t half = x.size(a) / 2;
  return ops::slice(x, a, 0, half) * ops::sigmoid(ops::slice(x, a, half, half));
}

DTensor hard_swish(const DTensor& x) { return hard_silu(x); }
DTensor hard_tanh(const DTensor& x) { return ops::clip(x, -1, 1); }
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

DTensor swish(const DTensor& x) { return silu(x); }

}  // namespace tessera::activations
