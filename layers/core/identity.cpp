#include <tessera/layers/core/identity.hpp>

#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

namespace {

class IdentityLayer final : public Layer {
 public:
  using Layer::Layer;
  std::string class_name() const override { return "Identity"; }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return inputs[0]; }
};

const RegisteredLayer registered_identity("Identity", plain_layer<Identity>);

}  // namespace

Identity::Identity(const LayerOptions& options)
    : LayerHandle(std::make_shared<IdentityLayer>(options)) {}

}  // namespace tessera
