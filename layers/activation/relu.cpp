#include <tessera/layers/activation/relu.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>

namespace tessera {
namespace {

void check_option(const std::string& name, const char* option, double value) {
  if (value >= 0) return;
  throw ConfigError("ReLU " + name, str(option, " is not negative"), str(value),
                    "give a number from 0 on");
}

}  // namespace

ReLULayer::ReLULayer(const ReLUOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), max_value_(options.max_value),
      negative_slope_(options.negative_slope), threshold_(options.threshold) {
  if (max_value_) check_option(options.name, "max_value", *max_value_);
  check_option(options.name, "negative_slope", negative_slope_);
  check_option(options.name, "threshold", threshold_);
}

Json ReLULayer::config() const {
  Json json = Layer::config();
  json["max_value"] = max_value_ ? Json(*max_value_) : Json(nullptr);
  json["negative_slope"] = negative_slope_;
  json["threshold"] = threshold_;
  return json;
}

DTensor ReLULayer::call(const Inputs& inputs, const CallContext&) {
  return activations::relu(inputs[0], negative_slope_, max_value_, threshold_);
}

ReLU ReLU::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return ReLU({.max_value = config.take_optional<double>("max_value"),
               .negative_slope = config.take_or("negative_slope", 0.0),
               .threshold = config.take_or("threshold", 0.0),
               .name = options.name,
               .dtype = options.dtype,
               .trainable = options.trainable});
}

}  // namespace tessera
