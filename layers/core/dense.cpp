#include <tessera/layers/core/dense.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>

namespace tessera {

DenseLayer::DenseLayer(int64_t units, const DenseOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), units_(units), options_(options) {
  if (units < 1) {
    throw ConfigError("Dense " + options.name, "units is at least 1", str(units),
                      "give the number of outputs");
  }
  if (!options.kernel_layout.empty()) set_weight_layout("kernel", options.kernel_layout);
  if (!options.bias_layout.empty()) set_weight_layout("bias", options.bias_layout);
}

Json DenseLayer::config() const {
  Json json = Layer::config();
  json["units"] = units_;
  json["activation"] = options_.activation.name();
  json["use_bias"] = options_.use_bias;
  json["kernel_initializer"] = serialized(options_.kernel_initializer);
  json["bias_initializer"] = serialized(options_.bias_initializer);
  json["kernel_regularizer"] = serialized(options_.kernel_regularizer);
  json["bias_regularizer"] = serialized(options_.bias_regularizer);
  json["activity_regularizer"] = serialized(options_.activity_regularizer);
  json["kernel_constraint"] = serialized(options_.kernel_constraint);
  json["bias_constraint"] = serialized(options_.bias_constraint);
  return json;
}

Shape DenseLayer::output_shape(const Shapes& inputs) const {
  Shape shape = single_input(inputs);
  if (shape.size() < 2 || shape.back() < 0) {
    throw ShapeError("Dense " + path(), "the input has a batch axis and a known number of features",
                     to_string(shape), "flatten or expand it first");
  }
  if (built() && shape.back() != kernel_.shape()[0]) {
    throw ShapeError("Dense " + path(), str("the last axis has ", kernel_.shape()[0],
                     " features, as when built"), to_string(shape), "pass inputs of that size");
  }
  shape.back() = units_;
  return options_.activation.output_shape(shape);
}

void DenseLayer::make_weights(const Shapes& inputs) {
  kernel_ = add_weight(
      "kernel", {inputs[0].back(), units_}, options_.kernel_initializer,
      {.regularizer = options_.kernel_regularizer, .constraint = options_.kernel_constraint});
  if (!options_.use_bias) return;
  bias_ = add_weight(
      "bias", {units_}, options_.bias_initializer,
      {.regularizer = options_.bias_regularizer, .constraint = options_.bias_constraint});
}

DTensor DenseLayer::call(const Inputs& inputs, const CallContext&) {
  DTensor y = ops::matmul(inputs[0], read(kernel_));
  if (bias_.defined()) y = ops::add(y, read(bias_));
  y = options_.activation(y);
  if (options_.activity_regularizer && y.size(0) > 0) {
    add_loss((*options_.activity_regularizer)(y) / static_cast<double>(y.size(0)));
  }
  return y;
}

Dense Dense::from_config(JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  DenseOptions options;
  options.activation = config.take_or("activation", options.activation);
  options.use_bias = config.take_or("use_bias", options.use_bias);
  options.kernel_initializer = config.take_or("kernel_initializer", options.kernel_initializer);
  options.bias_initializer = config.take_or("bias_initializer", options.bias_initializer);
  options.kernel_regularizer = config.take_or("kernel_regularizer", options.kernel_regularizer);
  options.bias_regularizer = config.take_or("bias_regularizer", options.bias_regularizer);
  options.activity_regularizer =
      config.take_or("activity_regularizer", options.activity_regularizer);
  options.kernel_constraint = config.take_or("kernel_constraint", options.kernel_constraint);
  options.bias_constraint = config.take_or("bias_constraint", options.bias_constraint);
  options.name = base.name;
  options.dtype = base.dtype;
  options.trainable = base.trainable;
  take_nulls(config, {"lora_rank", "lora_alpha", "quantization_config"});
  return Dense(take_extent(config, "units"), options);
}

}  // namespace tessera
