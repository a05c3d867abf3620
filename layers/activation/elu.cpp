#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/ops/activation.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ELUOptions& o, const Visit& visit) {
  visit("alpha", o.alpha);
}

namespace {

class ELULayer final : public LayerOf<ELULayer, ELUOptions> {
 public:
  static constexpr const char* keras_name = "ELU";
  using LayerOf::LayerOf;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return ops::elu(inputs[0], arguments_.alpha);
  }
};

const RegisteredLayerOf<ELULayer> registered_elu;

}  // namespace

ELU::ELU(const ELUOptions& options) : LayerHandle(make_layer<ELULayer>(options)) {}

}  // namespace tessera
