#include <tessera/layers/regularization/dropout.hpp>

#include <cmath>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AlphaDropoutOptions& o, const Visit& visit) {
  NoiseShapeOption noise_shape{o.noise_shape};
  visit("seed", o.seed);
  visit("noise_shape", noise_shape);
}

namespace {

/// selu(-∞) = -scale · alpha.
constexpr double dropped = -1.6732632423543772 * 1.0507009873554805;

class AlphaDropoutLayer final : public Layer {
 public:
  AlphaDropoutLayer(double rate, const AlphaDropoutOptions& options);
  std::string class_name() const override { return "AlphaDropout"; }
  Json config() const override { return layer_config(*this, {{"rate", rate_}}, options_); }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double rate_;
  AlphaDropoutOptions options_;
  NoiseShape noise_shape_;
};

const RegisteredLayer registered_alpha_dropout("AlphaDropout", [](JsonObject& config) {
  const auto options = layer_options_from<AlphaDropoutOptions>(config);
  return AlphaDropout(config.take<double>("rate"), options);
});

AlphaDropoutLayer::AlphaDropoutLayer(double rate, const AlphaDropoutOptions& options)
    : Layer(common_options(options)),
      rate_(rate),
      options_(options),
      noise_shape_{options.noise_shape} {
  check_rate("AlphaDropout " + options.name, rate);
  noise_shape_.check("AlphaDropout " + options.name);
}

Shape AlphaDropoutLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  noise_shape_.check_input("AlphaDropout " + path(), input);
  return input;
}

DTensor AlphaDropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  const auto constant = [&](double value) { return scalar(value, x.mesh(), x.dtype()); };
  const DTensor factors =
      noise_shape_.factors(x, rate_, draw_seed(context, path(), x.mesh(), options_.seed));
  const DTensor keep = ops::greater(factors, constant(0));
  const double scale = 1 / std::sqrt((1 - rate_) * (1 + rate_ * dropped * dropped));
  return ops::where(keep, x, constant(dropped)) * scale + -scale * dropped * rate_;
}

}  // namespace

AlphaDropout::AlphaDropout(double rate, const AlphaDropoutOptions& options)
    : LayerHandle(std::make_shared<AlphaDropoutLayer>(rate, options)) {}

}  // namespace tessera
