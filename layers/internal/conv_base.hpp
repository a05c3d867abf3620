#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera::detail {

/// The convolution of each channel alone: x (n, spatial…, c), kernel (window…, c, m) ->
/// (n, spatial'…, c · m). Channels may be sharded without communication.
DTensor depthwise_conv(const DTensor& x, const DTensor& kernel,
                       const std::vector<WindowAxis>& axes);

/// Visits what all convolutions have, of a layer's options and its kernel_size; the options of its
/// kernels differ in name.
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

/// What convolutions share: window arguments, bias, activation and penalty. `Arguments` is a struct
/// of a layer's options with its other arguments, kernel_size among them, and has fields().
template <class Arguments>
class ConvBase : public SpatialLayer {
 public:
  /// Throws ConfigError for an argument that cannot be.
  ConvBase(const std::string& class_name, int64_t spatial, const Arguments& arguments)
      : SpatialLayer(class_name, spatial, arguments.data_format, common_options(arguments)),
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
  /// (window…, last…).
  Shape kernel_shape(std::initializer_list<int64_t> last) const {
    Shape shape(kernel_size().begin(), kernel_size().end());
    shape.insert(shape.end(), last.begin(), last.end());
    return shape;
  }
  /// How the kernel moves over x.
  std::vector<WindowAxis> windows(const Shape& x) const {
    return SpatialLayer::windows(x, kernel_size(), strides(), dilation_rate(), arguments_.padding);
  }
  /// Weight "bias" of the outputs; last of the weights.
  void add_bias(int64_t outputs) {
    if (!arguments_.use_bias) return;
    bias_ = add_weight(
        "bias", {outputs}, arguments_.bias_initializer,
        {.regularizer = arguments_.bias_regularizer, .constraint = arguments_.bias_constraint});
  }
  /// y + bias.
  DTensor with_bias(const DTensor& y) { return bias_.defined() ? ops::add(y, read(bias_)) : y; }
  /// Activation and penalty.
  DTensor epilogue(DTensor y) final {
    y = arguments_.activation(y);
    penalize(arguments_.activity_regularizer, y);
    return y;
  }
  Shape finished_shape(const Shape& y) const final { return arguments_.activation.output_shape(y); }

  Arguments arguments_;  ///< numbers of axes one for each

 private:
  Variable bias_;
};

}  // namespace tessera::detail
