#include <tessera/layers/regularization/alpha_dropout.hpp>

#include <cmath>

#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {
namespace {

/// selu(-∞): -scale · alpha.
constexpr double dropped = -1.6732632423543772 * 1.0507009873554805;

}  // namespace

AlphaDropoutLayer::AlphaDropoutLayer(double rate, const AlphaDropoutOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), rate_(rate),
      noise_shape_{options.noise_shape}, seed_(options.seed) {
  check_rate("AlphaDropout " + options.name, rate);
  noise_shape_.check("AlphaDropout " + options.name);
}

Json AlphaDropoutLayer::config() const {
  Json json = Layer::config();
  json["rate"] = rate_;
  json["seed"] = seed_ ? Json(*seed_) : Json(nullptr);
  json["noise_shape"] = noise_shape_json(noise_shape_.shape);
  return json;
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
      noise_shape_.factors(x, rate_, draw_seed(context, path(), x.mesh(), seed_));
  const DTensor kept = ops::greater(factors, constant(0));
  const double scale = 1 / std::sqrt((1 - rate_) * (1 + rate_ * dropped * dropped));
  return ops::where(kept, x, constant(dropped)) * scale + -scale * dropped * rate_;
}

AlphaDropout AlphaDropout::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto rate = config.take<double>("rate");
  return AlphaDropout(rate, {.noise_shape = take_noise_shape(config),
                             .seed = config.take_optional<int64_t>("seed"),
                             .name = options.name,
                             .dtype = options.dtype,
                             .trainable = options.trainable});
}

}  // namespace tessera
