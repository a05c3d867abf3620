#include <tessera/layers/regularization/dropout.hpp>

#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/random.hpp>

namespace tessera {

DropoutLayer::DropoutLayer(double rate, const DropoutOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), rate_(rate),
      noise_shape_{options.noise_shape}, seed_(options.seed) {
  check_rate("Dropout " + options.name, rate);
  noise_shape_.check("Dropout " + options.name);
}

Json DropoutLayer::config() const {
  Json json = Layer::config();
  json["rate"] = rate_;
  json["seed"] = seed_ ? Json(*seed_) : Json(nullptr);
  json["noise_shape"] = noise_shape_json(noise_shape_.shape);
  return json;
}

Shape DropoutLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  noise_shape_.check_input("Dropout " + path(), input);
  return input;
}

DTensor DropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  const DTensor seed = draw_seed(context, path(), x.mesh(), seed_);
  if (noise_shape_.shape.empty()) return ops::dropout(x, rate_, seed);
  return x * noise_shape_.factors(x, rate_, seed);
}

Dropout Dropout::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto rate = config.take<double>("rate");
  return Dropout(rate, {.noise_shape = take_noise_shape(config),
                        .seed = config.take_optional<int64_t>("seed"),
                        .name = options.name,
                        .dtype = options.dtype,
                        .trainable = options.trainable});
}

}  // namespace tessera
