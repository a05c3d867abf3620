#include <tessera/layers/kind/new_layer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(NewLayerOptions& o, const Visit& visit) {
  visit("factor", o.factor);
}

namespace {

class NewLayerLayer final : public Layer {
 public:
  explicit NewLayerLayer(const NewLayerOptions& options);
  std::string class_name() const override { return "NewLayer"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  NewLayerOptions options_;
  Variable offset_;
};

const RegisteredLayer registered_new_layer("NewLayer", [](JsonObject& config) {
  return NewLayer(layer_options_from<NewLayerOptions>(config));
});

NewLayerLayer::NewLayerLayer(const NewLayerOptions& options)
    : Layer(common_options(options)), options_(options) {
  if (options.factor != 0) return;
  throw ConfigError("NewLayer " + options.name, "factor is not 0", "0", "use 2");
}

void NewLayerLayer::make_weights(const Shapes& inputs) {
  offset_ = add_weight("offset", {single_input(inputs).back()}, Zeros());
}

DTensor NewLayerLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::scale(inputs[0], options_.factor) + read(offset_);
}

}  // namespace

NewLayer::NewLayer(const NewLayerOptions& options)
    : LayerHandle(std::make_shared<NewLayerLayer>(options)) {}

}  // namespace tessera
