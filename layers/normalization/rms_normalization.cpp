#include <tessera/layers/normalization/rms_normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/normalization/normalized_axes.hpp>

namespace tessera {

RMSNormalizationLayer::RMSNormalizationLayer(const RMSNormalizationOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), options_(options) {
  if (!options.axis.empty()) return;
  throw ConfigError("RMSNormalization " + options.name, "axis names an axis at least", "none",
                    "leave it out for the last one");
}

Json RMSNormalizationLayer::config() const {
  Json json = Layer::config();
  json["axis"] = axes_json(options_.axis);
  json["epsilon"] = options_.epsilon;
  return json;
}

Shape RMSNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const std::string where = "RMSNormalization " + path();
  const Shape extents = extents_of(input, normalized_axes(where, options_.axis, input));
  if (built()) check_as_built(where, extents, scale_.shape());
  return input;
}

void RMSNormalizationLayer::make_weights(const Shapes& inputs) {
  scale_ = add_weight("scale",
                      extents_of(inputs[0], normalized_axes(path(), options_.axis, inputs[0])),
                      "ones");
}

DTensor RMSNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  const at::ScalarType dtype = c10::promoteTypes(inputs[0].dtype(), at::kFloat);
  const DTensor x = ops::cast(inputs[0], dtype);
  const std::vector<int64_t> axes = normalized_axes(path(), options_.axis, x.shape());
  const DTensor scale =
      ops::reshape(ops::cast(read(scale_), dtype), kept_extents(x.shape(), axes));
  const DTensor factor = ops::rsqrt(ops::mean(ops::square(x), axes, true) + options_.epsilon);
  return ops::cast(x * factor * scale, dtype_policy().compute);
}

RMSNormalization RMSNormalization::from_config(JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  RMSNormalizationOptions options;
  if (config.has("axis")) options.axis = take_axes(config, "axis");
  options.epsilon = config.take_or("epsilon", options.epsilon);
  options.name = base.name;
  options.dtype = base.dtype;
  options.trainable = base.trainable;
  return RMSNormalization(options);
}

}  // namespace tessera
