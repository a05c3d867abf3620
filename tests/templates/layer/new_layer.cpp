#include <tessera/layers/kind/new_layer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(NewLayerOptions& o, const Visit& visit) {
  visit("factor", o.factor);
}

namespace {

class NewLayerLayer final : public LayerOf<NewLayerLayer, NewLayerOptions> {
 public:
  static constexpr const char* keras_name = "NewLayer";
  explicit NewLayerLayer(const NewLayerOptions& options);
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  Variable offset_;
};

const RegisteredLayerOf<NewLayerLayer> registered_new_layer;

NewLayerLayer::NewLayerLayer(const NewLayerOptions& options) : LayerOf(options) {
  if (options.factor != 0) return;
  throw ConfigError(where(), "factor is not 0", "0", "use 2");
}

void NewLayerLayer::make_weights(const Shapes& inputs) {
  offset_ = add_weight("offset", {single_input(inputs).back()}, Zeros());
}

DTensor NewLayerLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::scale(inputs[0], arguments_.factor) + read(offset_);
}

}  // namespace

NewLayer::NewLayer(const NewLayerOptions& options)
    : LayerHandle(make_layer<NewLayerLayer>(options)) {}

}  // namespace tessera
