#include <tessera/layers/dense.hpp>

#include <tessera/framework/base/error.hpp>
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
  json["kernel_initializer"] = {{"class_name", options_.kernel_initializer->class_name()},
                                {"config", options_.kernel_initializer->config()}};
  json["bias_initializer"] = {{"class_name", options_.bias_initializer->class_name()},
                              {"config", options_.bias_initializer->config()}};
  return json;
}

Shape DenseLayer::output_shape(const Shapes& inputs) const {
  Shape shape = only(inputs);
  if (shape.size() < 2 || shape.back() < 0) {
    throw ShapeError("Dense " + path(), "the input has a batch axis and a known number of features",
                     to_string(shape), "flatten or expand it first");
  }
  if (built() && shape.back() != kernel_.shape()[0]) {
    throw ShapeError("Dense " + path(), str("the last axis has ", kernel_.shape()[0],
                     " features, as when built"), to_string(shape), "pass inputs of that size");
  }
  shape.back() = units_;
  return shape;
}

void DenseLayer::make_weights(const Shapes& inputs) {
  kernel_ = add_weight("kernel", {inputs[0].back(), units_}, options_.kernel_initializer);
  if (options_.use_bias) bias_ = add_weight("bias", {units_}, options_.bias_initializer);
}

DTensor DenseLayer::call(const Inputs& inputs, const CallContext&) {
  DTensor y = ops::matmul(inputs[0], read(kernel_));
  if (bias_.defined()) y = ops::add(y, read(bias_));
  return options_.activation(y);
}

}  // namespace tessera
