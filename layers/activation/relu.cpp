#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ReLUOptions& o, const Visit& visit) {
  visit("max_value", o.max_value);
  visit("negative_slope", o.negative_slope);
  visit("threshold", o.threshold);
}

namespace {

class ReLULayer final : public Layer {
 public:
  explicit ReLULayer(const ReLUOptions& options);
  std::string class_name() const override { return "ReLU"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return activations::relu(inputs[0], options_.negative_slope, options_.max_value,
                             options_.threshold);
  }

 private:
  ReLUOptions options_;
};

const RegisteredLayer registered_relu("ReLU", [](JsonObject& config) {
  return ReLU(layer_options_from<ReLUOptions>(config));
});

void check_relu_option(const std::string& name, const char* option, double value) {
  if (value >= 0) return;
  throw ConfigError("ReLU " + name, str(option, " is not negative"), str(value),
                    "give a number from 0 on");
}

ReLULayer::ReLULayer(const ReLUOptions& options)
    : Layer(common_options(options)), options_(options) {
  if (options.max_value) check_relu_option(options.name, "max_value", *options.max_value);
  check_relu_option(options.name, "negative_slope", options.negative_slope);
  check_relu_option(options.name, "threshold", options.threshold);
}

}  // namespace

ReLU::ReLU(const ReLUOptions& options) : LayerHandle(std::make_shared<ReLULayer>(options)) {}

}  // namespace tessera
