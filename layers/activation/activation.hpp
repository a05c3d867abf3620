#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// An activation function as a layer (keras.layers.Activation). Layout and, but for "glu", shape
/// stay.
class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const ActivationRef& activation, const LayerOptions& options)
      : Layer(options), activation_(activation) {}
  std::string class_name() const override { return "Activation"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override {
    return activation_.output_shape(single_input(inputs));
  }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return activation_(inputs[0]); }

 private:
  ActivationRef activation_;
};

class Activation : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown name.
  explicit Activation(const ActivationRef& activation, const LayerOptions& options = {})
      : LayerHandle(std::make_shared<ActivationLayer>(activation, options)) {}
  static Activation from_config(JsonObject& config);
};

}  // namespace tessera
