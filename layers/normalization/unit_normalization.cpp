#include <tessera/layers/normalization/unit_normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/nn/l2_normalize.hpp>

namespace tessera {

UnitNormalizationLayer::UnitNormalizationLayer(const UnitNormalizationOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), axis_(options.axis) {
  if (!axis_.empty()) return;
  throw ConfigError("UnitNormalization " + options.name, "axis holds at least one axis", "none",
                    "give -1 for the last");
}

Json UnitNormalizationLayer::config() const {
  Json json = Layer::config();
  json["axis"] = axes_json(axis_);
  return json;
}

Shape UnitNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  for (const int64_t axis : axis_) {
    normalize_axis(axis, static_cast<int64_t>(input.size()), "UnitNormalization " + path());
  }
  return input;
}

DTensor UnitNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  return l2_normalize(inputs[0], axis_, 1e-12);
}

UnitNormalization UnitNormalization::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  UnitNormalizationOptions made;
  if (config.has("axis")) made.axis = take_axes(config, "axis");
  made.name = options.name;
  made.dtype = options.dtype;
  made.trainable = options.trainable;
  return UnitNormalization(made);
}

}  // namespace tessera
