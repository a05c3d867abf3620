#include <tessera/layers/activation/leaky_relu.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/activation.hpp>

namespace tessera {

LeakyReLULayer::LeakyReLULayer(const LeakyReLUOptions& options)
    : Layer({options.name, options.dtype, options.trainable}),
      negative_slope_(options.negative_slope) {
  if (negative_slope_ >= 0) return;
  throw ConfigError("LeakyReLU " + options.name, "negative_slope is not negative",
                    str(negative_slope_), "give a number from 0 on");
}

Json LeakyReLULayer::config() const {
  Json json = Layer::config();
  json["negative_slope"] = negative_slope_;
  return json;
}

DTensor LeakyReLULayer::call(const Inputs& inputs, const CallContext&) {
  return ops::leaky_relu(inputs[0], negative_slope_);
}

LeakyReLU LeakyReLU::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return LeakyReLU({.negative_slope = config.take_or("negative_slope", 0.3),
                   .name = options.name,
                   .dtype = options.dtype,
                   .trainable = options.trainable});
}

}  // namespace tessera
