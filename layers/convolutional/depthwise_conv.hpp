#pragma once

#include <memory>

#include <tessera/layers/convolutional/conv_base.hpp>

namespace tessera {

/// Options of DepthwiseConv1D, DepthwiseConv2D.
struct DepthwiseConvOptions {
  AxisValues strides = 1;
  std::string padding = "valid";  ///< "valid", "same"
  int64_t depth_multiplier = 1;
  std::string data_format = "";
  AxisValues dilation_rate = 1;
  ActivationRef activation = {};
  bool use_bias = true;
  InitializerHandle depthwise_initializer = "glorot_uniform";
  InitializerHandle bias_initializer = "zeros";
  RegularizerHandle depthwise_regularizer = {};
  RegularizerHandle bias_regularizer = {};
  RegularizerHandle activity_regularizer = {};  ///< of the output, divided by the rows
  ConstraintHandle depthwise_constraint = {};
  ConstraintHandle bias_constraint = {};
  LayoutSpec kernel_layout = {};
  LayoutSpec bias_layout = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// The convolution of each channel alone: x (n, spatial…, c), kernel (window…, c, m) ->
/// (n, spatial'…, c · m). Channels may be sharded without communication.
DTensor depthwise_conv(const DTensor& x, const DTensor& kernel,
                       const std::vector<WindowAxis>& axes);

/// activation(every channel convolved with depth_multiplier kernels of its own + bias)
/// (keras.layers.DepthwiseConv1D, DepthwiseConv2D). Weights: kernel (window…, channels,
/// depth_multiplier), bias (channels · depth_multiplier). Shape: (batch, spatial…, channels) ->
/// (batch, spatial'…, channels · depth_multiplier).
/// Layouts: the batch, spatial axes and channels sharded pass on; a spatial axis fetches the rows
/// that the window needs.
class DepthwiseConvLayer final : public ConvBase {
 public:
  DepthwiseConvLayer(int64_t spatial, const AxisValues& kernel_size,
                     const DepthwiseConvOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  DepthwiseConvOptions own_;
  Variable kernel_;
};

class DepthwiseConv1D : public LayerHandle {
 public:
  /// Throws ConfigError for arguments that do not go together or an unknown name.
  explicit DepthwiseConv1D(const AxisValues& kernel_size, const DepthwiseConvOptions& options = {})
      : LayerHandle(std::make_shared<DepthwiseConvLayer>(1, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class DepthwiseConv2D : public LayerHandle {
 public:
  explicit DepthwiseConv2D(const AxisValues& kernel_size, const DepthwiseConvOptions& options = {})
      : LayerHandle(std::make_shared<DepthwiseConvLayer>(2, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
