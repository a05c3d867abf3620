#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/activation.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LeakyReLUOptions& o, const Visit& visit) {
  visit("negative_slope", o.negative_slope);
}

namespace {

class LeakyReLULayer final : public Layer {
 public:
  explicit LeakyReLULayer(const LeakyReLUOptions& options);
  std::string class_name() const override { return "LeakyReLU"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return ops::leaky_relu(inputs[0], options_.negative_slope);
  }

 private:
  LeakyReLUOptions options_;
};

const RegisteredLayer registered_leaky_relu("LeakyReLU", [](JsonObject& config) {
  return LeakyReLU(layer_options_from<LeakyReLUOptions>(config));
});

LeakyReLULayer::LeakyReLULayer(const LeakyReLUOptions& options)
    : Layer(common_options(options)), options_(options) {
  if (options.negative_slope >= 0) return;
  throw ConfigError("LeakyReLU " + options.name, "negative_slope is not negative",
                    str(options.negative_slope), "give a number from 0 on");
}

}  // namespace

LeakyReLU::LeakyReLU(const LeakyReLUOptions& options)
    : LayerHandle(std::make_shared<LeakyReLULayer>(options)) {}

}  // namespace tessera
