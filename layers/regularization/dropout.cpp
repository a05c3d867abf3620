#include <tessera/layers/regularization/dropout.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(DropoutOptions& o, const Visit& visit) {
  NoiseShapeOption noise_shape{o.noise_shape};
  visit("seed", o.seed);
  visit("noise_shape", noise_shape);
}

namespace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(double rate, const DropoutOptions& options);
  std::string class_name() const override { return "Dropout"; }
  Json config() const override { return layer_config(*this, {{"rate", rate_}}, options_); }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double rate_;
  DropoutOptions options_;
  NoiseShape noise_shape_;
};

const RegisteredLayer registered_dropout("Dropout", [](JsonObject& config) {
  const auto options = layer_options_from<DropoutOptions>(config);
  return Dropout(config.take<double>("rate"), options);
});

DropoutLayer::DropoutLayer(double rate, const DropoutOptions& options)
    : Layer(common_options(options)),
      rate_(rate),
      options_(options),
      noise_shape_{options.noise_shape} {
  check_rate("Dropout " + options.name, rate);
  noise_shape_.check("Dropout " + options.name);
}

Shape DropoutLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  noise_shape_.check_input("Dropout " + path(), input);
  return input;
}

DTensor DropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  const DTensor seed = draw_seed(context, path(), x.mesh(), options_.seed);
  if (noise_shape_.shape.empty()) return ops::dropout(x, rate_, seed);
  return x * noise_shape_.factors(x, rate_, seed);
}

}  // namespace

Dropout::Dropout(double rate, const DropoutOptions& options)
    : LayerHandle(std::make_shared<DropoutLayer>(rate, options)) {}

}  // namespace tessera
