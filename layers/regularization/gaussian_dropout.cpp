#include <tessera/layers/regularization/dropout.hpp>

#include <cmath>

#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/internal/noise_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

using GaussianDropoutArguments = RateArguments<GaussianDropoutOptions>;

class GaussianDropoutLayer final
    : public LayerOf<GaussianDropoutLayer, GaussianDropoutArguments, NoiseLayer> {
 public:
  static constexpr const char* keras_name = "GaussianDropout";
  explicit GaussianDropoutLayer(const GaussianDropoutArguments& a) : LayerOf(a, a.rate, a.seed) {
    check(where());
  }

 protected:
  DTensor noisy(const DTensor& x, const DTensor& seed) const override {
    return ops::gaussian_dropout(x, std::sqrt(arguments_.rate / (1 - arguments_.rate)), seed);
  }
};

const RegisteredLayerOf<GaussianDropoutLayer> registered_gaussian_dropout;

}  // namespace

GaussianDropout::GaussianDropout(double rate, const GaussianDropoutOptions& options)
    : LayerHandle(make_layer<GaussianDropoutLayer>(GaussianDropoutArguments{options, rate})) {}

}  // namespace tessera
