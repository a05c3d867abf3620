#include <tessera/layers/convolutional/conv.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {

LayerHandle conv_from(JsonObject& config, int64_t spatial) {
  ConvOptions options = take_conv_options(config);
  options.groups = config.take_or("groups", options.groups);
  take_kernel_options(config, "kernel", options.kernel_initializer, options.kernel_regularizer,
                      options.kernel_constraint);
  take_nulls(config, {"lora_rank", "lora_alpha", "quantization_config"});
  const AxisValues size = take_axis_values(config, "kernel_size", 0);
  return make_layer<ConvLayer>(spatial, take_extent(config, "filters"), size, options);
}

}  // namespace

ConvLayer::ConvLayer(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
                     const ConvOptions& options)
    : ConvBase(str("Conv", spatial, "D"), spatial, kernel_size, options), filters_(filters) {
  check_positive(filters, "filters");
  check_positive(options.groups, "groups");
  if (filters % options.groups != 0) {
    throw ConfigError(class_name() + " " + name(), "filters is a multiple of groups",
                      str(filters, " filters in ", options.groups, " groups"),
                      "change one of them");
  }
  if (!options.kernel_layout.empty()) set_weight_layout("kernel", options.kernel_layout);
}

Json ConvLayer::config() const {
  Json json = ConvBase::config();
  json["filters"] = filters_;
  json["groups"] = options().groups;
  put_kernel_options(json, "kernel", options().kernel_initializer, options().kernel_regularizer,
                     options().kernel_constraint);
  return json;
}

Shape ConvLayer::image_shape(const Shape& x) const {
  const int64_t channels = channels_of(x);
  if (channels % options().groups != 0) {
    throw ShapeError(where(), str("the number of channels is a multiple of groups ",
                                  options().groups), to_string(x), "change groups");
  }
  return shape_of(x[0], outputs(x, windows(x)), filters_);
}

void ConvLayer::make_weights(const Shapes& inputs) {
  const int64_t channels = channels_last_shape(inputs).back();
  kernel_ = add_weight("kernel", kernel_shape({channels / options().groups, filters_}),
                       options().kernel_initializer,
                       {.regularizer = options().kernel_regularizer,
                        .constraint = options().kernel_constraint});
  add_bias(filters_);
}

DTensor ConvLayer::transform(const DTensor& x, const CallContext&) {
  const std::vector<WindowAxis> axes = windows(x.shape());
  const DTensor kernel = read(kernel_);
  const int64_t groups = options().groups;
  if (groups == 1) return with_bias(ops::conv(x, kernel, axes));
  // Groups get an axis of their own.
  Shape parts = x.shape();
  parts.back() = groups;
  parts.push_back(x.shape().back() / groups);
  const int64_t each = filters_ / groups;
  const DTensor y =
      ops::conv(ops::reshape(x, parts),
                ops::reshape(kernel, kernel_shape({parts.back(), groups, each})), axes);
  return with_bias(ops::flatten(y, spatial() + 1));
}

LayerHandle Conv1D::from_config(JsonObject& config) { return conv_from(config, 1); }
LayerHandle Conv2D::from_config(JsonObject& config) { return conv_from(config, 2); }
LayerHandle Conv3D::from_config(JsonObject& config) { return conv_from(config, 3); }

}  // namespace tessera
