#include <tessera/layers/normalization/normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/layer_norm.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/normalized_axes.hpp>

namespace tessera {

using namespace detail;

/// Keras' deprecated option, which must be false.
struct RmsScalingOption {};

Json option_json(const RmsScalingOption&) { return false; }

void read_option(JsonObject& config, const std::string& key, RmsScalingOption&) {
  if (!config.take_or(key, false)) return;
  throw ConfigError(config.path().text(), "rms_scaling, which Keras deprecates, is false", "true",
                    "use RMSNormalization");
}

template <class Visit>
void fields(LayerNormalizationOptions& o, const Visit& visit) {
  AxesOption axis{o.axis};
  RmsScalingOption rms_scaling;
  visit("axis", axis);
  visit("rms_scaling", rms_scaling);
  affine_fields(o, visit);
}

namespace {

class LayerNormalizationLayer final
    : public LayerOf<LayerNormalizationLayer, LayerNormalizationOptions> {
 public:
  static constexpr const char* keras_name = "LayerNormalization";
  explicit LayerNormalizationLayer(const LayerNormalizationOptions& options);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  Variable gamma_, beta_;
};

const RegisteredLayerOf<LayerNormalizationLayer> registered_layer_normalization;

LayerNormalizationLayer::LayerNormalizationLayer(const LayerNormalizationOptions& options)
    : LayerOf(options) {
  if (!options.axis.empty()) return;
  throw ConfigError(where(), "axis holds at least one axis", "none",
                    "leave it out for the last one");
}

Shape LayerNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const Shape extents = extents_of(input, normalized_axes(where(), arguments_.axis, input));
  if (built()) {
    check_as_built(
        where(), extents,
        extents_of(built_for()[0], normalized_axes(where(), arguments_.axis, built_for()[0])));
  }
  return input;
}

void LayerNormalizationLayer::make_weights(const Shapes& inputs) {
  const Shape shape = extents_of(inputs[0], normalized_axes(path(), arguments_.axis, inputs[0]));
  const auto add = [this](auto&&... weight) { return add_weight(weight...); };
  add_affine(arguments_, shape, add, gamma_, beta_);
}

DTensor LayerNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  // Computes as precisely as the weights are stored.
  const at::ScalarType dtype = c10::promoteTypes(inputs[0].dtype(), at::kFloat);
  const auto weight = [&](const Variable& variable) {
    return variable.defined() ? read(variable, dtype) : DTensor();
  };
  const DTensor y = ops::layer_norm(ops::cast(inputs[0], dtype), weight(gamma_), weight(beta_),
                                    normalized_axes(path(), arguments_.axis, inputs[0].shape()),
                                    arguments_.epsilon);
  return ops::cast(y, dtype_policy().compute);
}

}  // namespace

LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : LayerHandle(make_layer<LayerNormalizationLayer>(options)) {}

}  // namespace tessera
