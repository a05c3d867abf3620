#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/nn/config/layer_registry.hpp>

namespace tessera {

Json ActivationLayer::config() const {
  Json json = Layer::config();
  json["activation"] = activation_.name();
  return json;
}

Activation Activation::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return Activation(config.take<ActivationRef>("activation"), options);
}

}  // namespace tessera
