#pragma once

#include <memory>

#include <tessera/layers/convolutional/conv_base.hpp>

namespace tessera {

/// Options of SeparableConv1D, SeparableConv2D.
struct SeparableConvOptions {
  AxisValues strides = 1;
  std::string padding = "valid";  ///< "valid", "same"
  std::string data_format = "";
  AxisValues dilation_rate = 1;
  int64_t depth_multiplier = 1;
  ActivationRef activation = {};
  bool use_bias = true;
  InitializerHandle depthwise_initializer = "glorot_uniform";
  InitializerHandle pointwise_initializer = "glorot_uniform";
  InitializerHandle bias_initializer = "zeros";
  RegularizerHandle depthwise_regularizer = {};
  RegularizerHandle pointwise_regularizer = {};
  RegularizerHandle bias_regularizer = {};
  RegularizerHandle activity_regularizer = {};  ///< of the output, divided by the rows
  ConstraintHandle depthwise_constraint = {};
  ConstraintHandle pointwise_constraint = {};
  ConstraintHandle bias_constraint = {};
  LayoutSpec depthwise_layout = {};
  LayoutSpec pointwise_layout = {};
  LayoutSpec bias_layout = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// activation(every channel convolved alone, then all mixed at each place + bias)
/// (keras.layers.SeparableConv1D, SeparableConv2D). Weights: depthwise_kernel (window…, channels,
/// depth_multiplier), pointwise_kernel (1…, channels · depth_multiplier, filters), bias (filters).
/// Shape: (batch, spatial…, channels) -> (batch, spatial'…, filters). Layouts: as
/// DepthwiseConvLayer's, then as ConvLayer's.
class SeparableConvLayer final : public ConvBase {
 public:
  SeparableConvLayer(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
                     const SeparableConvOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  int64_t filters_;
  SeparableConvOptions own_;
  Variable depthwise_, pointwise_;
};

class SeparableConv1D : public LayerHandle {
 public:
  /// Throws ConfigError for arguments that do not go together or an unknown name.
  SeparableConv1D(int64_t filters, const AxisValues& kernel_size,
                  const SeparableConvOptions& options = {})
      : LayerHandle(std::make_shared<SeparableConvLayer>(1, filters, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class SeparableConv2D : public LayerHandle {
 public:
  SeparableConv2D(int64_t filters, const AxisValues& kernel_size,
                  const SeparableConvOptions& options = {})
      : LayerHandle(std::make_shared<SeparableConvLayer>(2, filters, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
