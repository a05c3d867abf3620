#include <tessera/layers/regularization/dropout.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/internal/noise_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

using DropoutArguments = RateArguments<DropoutOptions>;

class DropoutLayer final : public LayerOf<DropoutLayer, DropoutArguments, NoiseLayer> {
 public:
  static constexpr const char* keras_name = "Dropout";
  explicit DropoutLayer(const DropoutArguments& a) : LayerOf(a, a.rate, a.seed, a.noise_shape) {
    check(where());
  }

 protected:
  DTensor noisy(const DTensor& x, const DTensor& seed) const override {
    if (arguments_.noise_shape.empty()) return ops::dropout(x, arguments_.rate, seed);
    return x * factors(x, seed);
  }
};

const RegisteredLayerOf<DropoutLayer> registered_dropout;

}  // namespace

Dropout::Dropout(double rate, const DropoutOptions& options)
    : LayerHandle(make_layer<DropoutLayer>(DropoutArguments{options, rate})) {}

}  // namespace tessera
