#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera::detail {

/// Visits the options and arguments that all convolutions have. Kernel options are left to the
/// layers, whose names for them differ.
template <class Arguments, class Visit>
void conv_fields(Arguments& a, const Visit& visit) {
  visit("data_format", a.data_format);
  visit("kernel_size", a.kernel_size);
  visit("strides", a.strides);
  visit("padding", a.padding);
  visit("dilation_rate", a.dilation_rate);
  visit("activation", a.activation);
  visit("use_bias", a.use_bias);
  visit("activity_regularizer", a.activity_regularizer);
  visit("bias_initializer", a.bias_initializer);
  visit("bias_regularizer", a.bias_regularizer);
  visit("bias_constraint", a.bias_constraint);
}

/// Base of convolution layers: window arguments, bias, activation and penalty. `Arguments` holds a
/// layer's options and its other arguments, including kernel_size, and has fields().
template <class Arguments>
class ConvBase : public SpatialLayer {
 public:
  /// Throws ConfigError for an invalid argument.
  ConvBase(const std::string& class_name, int64_t spatial, const Arguments& arguments)
      : SpatialLayer(common_options(arguments), class_name, spatial, arguments.data_format),
        arguments_(arguments) {
    arguments_.data_format = data_format();
    arguments_.kernel_size = each(arguments.kernel_size, "kernel_size");
    arguments_.strides = each(arguments.strides, "strides");
    arguments_.dilation_rate = each(arguments.dilation_rate, "dilation_rate");
    std::vector<std::string> paddings = {"valid", "same"};
    if (class_name == "Conv1D") paddings.push_back("causal");
    check_padding(arguments.padding, paddings);
    if (arguments.activation.layer()) track("activation", arguments.activation.layer());
    if (!arguments.bias_layout.empty()) set_weight_layout("bias", arguments.bias_layout);
  }
  Json config() const final { return layer_config(*this, Json::object(), arguments_); }

 protected:
  const std::vector<int64_t>& kernel_size() const { return arguments_.kernel_size.values; }
  const std::vector<int64_t>& strides() const { return arguments_.strides.values; }
  const std::vector<int64_t>& dilation_rate() const { return arguments_.dilation_rate.values; }
  /// Returns (window…, last…).
  Shape kernel_shape(std::initializer_list<int64_t> last) const {
    Shape shape(kernel_size().begin(), kernel_size().end());
    shape.insert(shape.end(), last.begin(), last.end());
    return shape;
  }
  /// Returns how the kernel moves over each spatial axis of x.
  std::vector<WindowAxis> windows(const Shape& x) const {
    return SpatialLayer::windows(x, kernel_size(), strides(), dilation_rate(), arguments_.padding);
  }
  /// Adds the weight "bias", which must be the last one.
  void add_bias(int64_t outputs) {
    if (!arguments_.use_bias) return;
    bias_ = add_weight(
        "bias", {outputs}, arguments_.bias_initializer,
        {.regularizer = arguments_.bias_regularizer, .constraint = arguments_.bias_constraint});
  }
  /// Returns y + bias, or y without a bias.
  DTensor with_bias(const DTensor& y) { return bias_.defined() ? ops::add(y, read(bias_)) : y; }
  /// Applies activation and activity penalty.
  DTensor epilogue(DTensor y) final {
    y = arguments_.activation(y);
    penalize(arguments_.activity_regularizer, y);
    return y;
  }
  Shape epilogue_shape(const Shape& y) const final { return arguments_.activation.output_shape(y); }

  Arguments arguments_;  ///< spatial values are expanded to one per axis

 private:
  Variable bias_;
};

}  // namespace tessera::detail
