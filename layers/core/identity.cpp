#include <tessera/layers/core/identity.hpp>

#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

class IdentityLayer final : public LayerOf<IdentityLayer, LayerOptions> {
 public:
  static constexpr const char* keras_name = "Identity";
  using LayerOf::LayerOf;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return inputs[0]; }
};

const RegisteredLayerOf<IdentityLayer> registered_identity;

}  // namespace

Identity::Identity(const LayerOptions& options) : LayerHandle(make_layer<IdentityLayer>(options)) {}

}  // namespace tessera
