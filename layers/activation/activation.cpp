#include <tessera/layers/activation/activation.hpp>

#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct ActivationArguments : LayerOptions {
  ActivationHandle activation;
};

template <class Visit>
void fields(ActivationArguments& a, const Visit& visit) {
  RequiredOption activation{a.activation};
  visit("activation", activation);
}

class ActivationLayer final : public LayerOf<ActivationLayer, ActivationArguments> {
 public:
  static constexpr const char* keras_name = "Activation";
  explicit ActivationLayer(const ActivationArguments& arguments) : LayerOf(arguments) {
    if (arguments.activation.layer()) track("activation", arguments.activation.layer());
  }
  Shape output_shape(const Shapes& inputs) const override {
    return arguments_.activation.output_shape(single_input(inputs));
  }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return arguments_.activation(inputs[0]);
  }
};

const RegisteredLayerOf<ActivationLayer> registered_activation;

}  // namespace

Activation::Activation(const ActivationHandle& activation, const LayerOptions& options)
    : LayerHandle(make_layer<ActivationLayer>(ActivationArguments{options, activation})) {}

}  // namespace tessera
