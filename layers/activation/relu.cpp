#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ReLUOptions& o, const Visit& visit) {
  visit("max_value", o.max_value);
  visit("negative_slope", o.negative_slope);
  visit("threshold", o.threshold);
}

namespace {

class ReLULayer final : public LayerOf<ReLULayer, ReLUOptions> {
 public:
  static constexpr const char* keras_name = "ReLU";
  explicit ReLULayer(const ReLUOptions& options);
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return activations::relu(inputs[0], arguments_.negative_slope, arguments_.max_value,
                             arguments_.threshold);
  }
};

const RegisteredLayerOf<ReLULayer> registered_relu;

void check_relu_option(const std::string& where, const char* option, double value) {
  if (value >= 0) return;
  throw ConfigError(where, str(option, " is not negative"), str(value), "give a number from 0 on");
}

ReLULayer::ReLULayer(const ReLUOptions& options) : LayerOf(options) {
  if (options.max_value) check_relu_option(where(), "max_value", *options.max_value);
  check_relu_option(where(), "negative_slope", options.negative_slope);
  check_relu_option(where(), "threshold", options.threshold);
}

}  // namespace

ReLU::ReLU(const ReLUOptions& options) : LayerHandle(make_layer<ReLULayer>(options)) {}

}  // namespace tessera
