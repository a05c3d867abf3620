#include <tessera/layers/regularization/gaussian_noise.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/internal/noise_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct GaussianNoiseArguments : GaussianNoiseOptions {
  double stddev = 0;
};

template <class Visit>
void fields(GaussianNoiseArguments& a, const Visit& visit) {
  RequiredOption stddev{a.stddev};
  visit("stddev", stddev);
  visit("seed", a.seed);
}

class GaussianNoiseLayer final
    : public LayerOf<GaussianNoiseLayer, GaussianNoiseArguments, NoiseLayer> {
 public:
  static constexpr const char* keras_name = "GaussianNoise";
  explicit GaussianNoiseLayer(const GaussianNoiseArguments& a) : LayerOf(a, a.stddev, a.seed) {
    if (a.stddev >= 0 && a.stddev <= 1) return;
    throw ConfigError(where(), "stddev lies in [0, 1]", str(a.stddev), "scale the data to about 1");
  }

 protected:
  DTensor noisy(const DTensor& x, const DTensor& seed) const override {
    return ops::gaussian_noise(x, arguments_.stddev, seed);
  }
};

const RegisteredLayerOf<GaussianNoiseLayer> registered_gaussian_noise;

}  // namespace

GaussianNoise::GaussianNoise(double stddev, const GaussianNoiseOptions& options)
    : LayerHandle(make_layer<GaussianNoiseLayer>(GaussianNoiseArguments{options, stddev})) {}

}  // namespace tessera
