#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/activation.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LeakyReLUOptions& o, const Visit& visit) {
  visit("negative_slope", o.negative_slope);
}

namespace {

class LeakyReLULayer final : public LayerOf<LeakyReLULayer, LeakyReLUOptions> {
 public:
  static constexpr const char* keras_name = "LeakyReLU";
  explicit LeakyReLULayer(const LeakyReLUOptions& options);
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return ops::leaky_relu(inputs[0], arguments_.negative_slope);
  }
};

const RegisteredLayerOf<LeakyReLULayer> registered_leaky_relu;

LeakyReLULayer::LeakyReLULayer(const LeakyReLUOptions& options) : LayerOf(options) {
  if (options.negative_slope >= 0) return;
  throw ConfigError(where(), "negative_slope is not negative", str(options.negative_slope),
                    "give a number from 0 on");
}

}  // namespace

LeakyReLU::LeakyReLU(const LeakyReLUOptions& options)
    : LayerHandle(make_layer<LeakyReLULayer>(options)) {}

}  // namespace tessera
