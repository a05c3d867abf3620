#include <tessera/layers/regularization/dropout.hpp>

#include <cmath>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/noise_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// selu(-∞) = -scale · alpha.
constexpr double dropped = -1.6732632423543772 * 1.0507009873554805;

using AlphaDropoutArguments = RateArguments<AlphaDropoutOptions>;

class AlphaDropoutLayer final
    : public LayerOf<AlphaDropoutLayer, AlphaDropoutArguments, NoiseLayer> {
 public:
  static constexpr const char* keras_name = "AlphaDropout";
  explicit AlphaDropoutLayer(const AlphaDropoutArguments& a)
      : LayerOf(a, a.rate, a.seed, a.noise_shape) {
    check(where());
  }

 protected:
  DTensor noisy(const DTensor& x, const DTensor& seed) const override {
    const double rate = arguments_.rate;
    const auto constant = [&](double value) { return scalar(value, x.mesh(), x.dtype()); };
    const DTensor drawn = factors(x, seed);
    const DTensor keep = ops::greater(drawn, constant(0));
    const double scale = 1 / std::sqrt((1 - rate) * (1 + rate * dropped * dropped));
    return ops::where(keep, x, constant(dropped)) * scale + -scale * dropped * rate;
  }
};

const RegisteredLayerOf<AlphaDropoutLayer> registered_alpha_dropout;

}  // namespace

AlphaDropout::AlphaDropout(double rate, const AlphaDropoutOptions& options)
    : LayerHandle(make_layer<AlphaDropoutLayer>(AlphaDropoutArguments{options, rate})) {}

}  // namespace tessera
