#include <tessera/layers/activation/elu.hpp>

#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/activation.hpp>

namespace tessera {

ELULayer::ELULayer(const ELUOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), alpha_(options.alpha) {}

Json ELULayer::config() const {
  Json json = Layer::config();
  json["alpha"] = alpha_;
  return json;
}

DTensor ELULayer::call(const Inputs& inputs, const CallContext&) {
  return ops::elu(inputs[0], alpha_);
}

ELU ELU::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return ELU({.alpha = config.take_or("alpha", 1.0),
             .name = options.name,
             .dtype = options.dtype,
             .trainable = options.trainable});
}

}  // namespace tessera
