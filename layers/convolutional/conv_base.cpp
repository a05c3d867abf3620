#include <tessera/layers/convolutional/conv_base.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {

ConvBase::ConvBase(const std::string& class_name, int64_t spatial, const AxisValues& kernel_size,
                   const ConvOptions& options)
    : SpatialLayer(class_name, spatial, options.data_format,
                 {options.name, options.dtype, options.trainable}),
      options_(options), kernel_size_(each(kernel_size, "kernel_size")),
      strides_(each(options.strides, "strides")),
      dilation_rate_(each(options.dilation_rate, "dilation_rate")) {
  std::vector<std::string> paddings = {"valid", "same"};
  if (class_name == "Conv1D") paddings.push_back("causal");
  check_padding(options.padding, paddings);
  if (!options.bias_layout.empty()) set_weight_layout("bias", options.bias_layout);
}

Json ConvBase::config() const {
  Json json = SpatialLayer::config();
  json["kernel_size"] = kernel_size_;
  json["strides"] = strides_;
  json["padding"] = options_.padding;
  json["dilation_rate"] = dilation_rate_;
  json["activation"] = options_.activation.name();
  json["use_bias"] = options_.use_bias;
  json["activity_regularizer"] = serialized(options_.activity_regularizer);
  put_kernel_options(json, "bias", options_.bias_initializer, options_.bias_regularizer,
                     options_.bias_constraint);
  return json;
}

Shape ConvBase::kernel_shape(std::initializer_list<int64_t> last) const {
  Shape shape(kernel_size_.begin(), kernel_size_.end());
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}

void ConvBase::check_positive(int64_t value, const std::string& argument) const {
  if (value >= 1) return;
  throw ConfigError(class_name() + " " + name(), argument + " is at least 1", str(value),
                    "give a whole number from 1 on");
}

int64_t ConvBase::channels_of(const Shape& x) const {
  const int64_t channels = x.back();
  if (channels < 1) {
    throw ShapeError(where(), "the input's number of channels is known", to_string(x),
                     "give it in Input()");
  }
  if (built() && !built_for().empty()) {
    const int64_t expected = channels_last_shape(built_for()).back();
    if (channels != expected) {
      throw ShapeError(where(), str("the input has ", expected, " channels, as when built"),
                       to_string(x), "pass inputs of that size");
    }
  }
  return channels;
}

void ConvBase::add_bias(int64_t outputs) {
  if (!options_.use_bias) return;
  bias_ = add_weight("bias", {outputs}, options_.bias_initializer,
                     {.regularizer = options_.bias_regularizer,
                      .constraint = options_.bias_constraint});
}

DTensor ConvBase::with_bias(const DTensor& y) {
  return bias_.defined() ? ops::add(y, read(bias_)) : y;
}

Shape ConvBase::finished_shape(const Shape& y) const { return options_.activation.output_shape(y); }

DTensor ConvBase::epilogue(DTensor y) {
  y = options_.activation(y);
  if (options_.activity_regularizer && y.size(0) > 0) {
    add_loss((*options_.activity_regularizer)(y) / static_cast<double>(y.size(0)));
  }
  return y;
}

ConvOptions take_conv_options(JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  ConvOptions options;
  options.strides = take_axis_values(config, "strides", options.strides);
  options.padding = config.take_or("padding", options.padding);
  options.data_format = config.take_or("data_format", options.data_format);
  options.dilation_rate = take_axis_values(config, "dilation_rate", options.dilation_rate);
  options.activation = config.take_or("activation", options.activation);
  options.use_bias = config.take_or("use_bias", options.use_bias);
  options.activity_regularizer =
      config.take_or("activity_regularizer", options.activity_regularizer);
  take_kernel_options(config, "bias", options.bias_initializer, options.bias_regularizer,
                      options.bias_constraint);
  options.name = base.name;
  options.dtype = base.dtype;
  options.trainable = base.trainable;
  return options;
}

void put_kernel_options(Json& json, const std::string& prefix, const InitializerHandle& initializer,
                        const RegularizerHandle& regularizer, const ConstraintHandle& constraint) {
  json[prefix + "_initializer"] = serialized(initializer);
  json[prefix + "_regularizer"] = serialized(regularizer);
  json[prefix + "_constraint"] = serialized(constraint);
}

void take_kernel_options(JsonObject& config, const std::string& prefix,
                         InitializerHandle& initializer, RegularizerHandle& regularizer,
                         ConstraintHandle& constraint) {
  initializer = config.take_or(prefix + "_initializer", initializer);
  regularizer = config.take_or(prefix + "_regularizer", regularizer);
  constraint = config.take_or(prefix + "_constraint", constraint);
}

}  // namespace tessera
