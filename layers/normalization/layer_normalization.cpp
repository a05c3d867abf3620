#include <tessera/layers/normalization/normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/layer_norm.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/normalized_axes.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LayerNormalizationOptions& o, const Visit& visit) {
  AxesOption axis{o.axis};
  visit("axis", axis);
  affine_fields(o, visit);
}

namespace {

class LayerNormalizationLayer final : public Layer {
 public:
  explicit LayerNormalizationLayer(const LayerNormalizationOptions& options);
  std::string class_name() const override { return "LayerNormalization"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  LayerNormalizationOptions options_;
  Variable gamma_, beta_;
};

const RegisteredLayer registered_layer_normalization("LayerNormalization", [](JsonObject& config) {
  const auto options = layer_options_from<LayerNormalizationOptions>(config);
  if (config.take_or("rms_scaling", false)) {
    throw ConfigError(config.path().text(), "rms_scaling, which Keras deprecates, is false", "true",
                      "use RMSNormalization");
  }
  return LayerNormalization(options);
});

LayerNormalizationLayer::LayerNormalizationLayer(const LayerNormalizationOptions& options)
    : Layer(common_options(options)), options_(options) {
  if (!options.axis.empty()) return;
  throw ConfigError("LayerNormalization " + options.name, "axis holds at least one axis", "none",
                    "leave it out for the last one");
}

Json LayerNormalizationLayer::config() const {
  // Keras writes rms_scaling after the axis.
  const Json first = {{"axis", axes_json(options_.axis)}, {"rms_scaling", false}};
  return layer_config(*this, first, options_);
}

Shape LayerNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const std::string where = "LayerNormalization " + path();
  const Shape extents = extents_of(input, normalized_axes(where, options_.axis, input));
  if (built()) {
    check_as_built(
        where, extents,
        extents_of(built_for()[0], normalized_axes(where, options_.axis, built_for()[0])));
  }
  return input;
}

void LayerNormalizationLayer::make_weights(const Shapes& inputs) {
  const Shape shape = extents_of(inputs[0], normalized_axes(path(), options_.axis, inputs[0]));
  const auto add = [this](auto&&... weight) { return add_weight(weight...); };
  add_affine(options_, shape, add, gamma_, beta_);
}

DTensor LayerNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  // Computes as precisely as the weights are stored.
  const at::ScalarType dtype = c10::promoteTypes(inputs[0].dtype(), at::kFloat);
  const auto weight = [&](const Variable& variable) {
    return variable.defined() ? variable.read(dtype) : DTensor();
  };
  const DTensor y =
      ops::layer_norm(ops::cast(inputs[0], dtype), weight(gamma_), weight(beta_),
                      normalized_axes(path(), options_.axis, inputs[0].shape()), options_.epsilon);
  return ops::cast(y, dtype_policy().compute);
}

}  // namespace

LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : LayerHandle(std::make_shared<LayerNormalizationLayer>(options)) {}

}  // namespace tessera
