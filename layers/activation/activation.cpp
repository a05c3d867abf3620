#include <tessera/layers/activation/activation.hpp>

#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

namespace {

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const ActivationHandle& activation, const LayerOptions& options)
      : Layer(options), activation_(activation) {
    if (activation.layer()) track("activation", activation.layer());
  }
  std::string class_name() const override { return "Activation"; }
  Json config() const override {
    return layer_config(*this, {{"activation", activation_json(activation_)}});
  }
  Shape output_shape(const Shapes& inputs) const override {
    return activation_.output_shape(single_input(inputs));
  }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return activation_(inputs[0]); }

 private:
  ActivationHandle activation_;
};

const RegisteredLayer registered_activation("Activation", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return Activation(config.take<ActivationHandle>("activation"), options);
});

}  // namespace

Activation::Activation(const ActivationHandle& activation, const LayerOptions& options)
    : LayerHandle(std::make_shared<ActivationLayer>(activation, options)) {}

}  // namespace tessera
