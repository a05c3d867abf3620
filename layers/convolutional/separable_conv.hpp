#pragma once

#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of SeparableConv1D and SeparableConv2D.
struct SeparableConvOptions {
  AxisValues strides = 1;            ///< stride of each spatial axis, or one for all
  std::string padding = "valid";     ///< "valid" or "same"
  std::string data_format = "";      ///< "channels_last" (default) or "channels_first"
  AxisValues dilation_rate = 1;      ///< dilation of the kernel
  int64_t depth_multiplier = 1;      ///< outputs per channel, before the pointwise convolution
  ActivationHandle activation = {};  ///< Keras' name of the output activation (default: none)
  bool use_bias = true;              ///< whether to add `bias`
  InitializerHandle depthwise_initializer = "glorot_uniform";  ///< initializer of depthwise_kernel
  InitializerHandle pointwise_initializer = "glorot_uniform";  ///< initializer of pointwise_kernel
  InitializerHandle bias_initializer = "zeros";                ///< initializer of `bias`
  RegularizerHandle depthwise_regularizer = {};                ///< penalty on `depthwise_kernel`
  RegularizerHandle pointwise_regularizer = {};                ///< penalty on `pointwise_kernel`
  RegularizerHandle bias_regularizer = {};                     ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};                 ///< penalty on the output, per row
  ConstraintHandle depthwise_constraint = {};                  ///< constraint on `depthwise_kernel`
  ConstraintHandle pointwise_constraint = {};                  ///< constraint on `pointwise_kernel`
  ConstraintHandle bias_constraint = {};                       ///< constraint on `bias`
  LayoutSpec depthwise_layout = {};  ///< layout of `depthwise_kernel`, over layout maps
  LayoutSpec pointwise_layout = {};  ///< layout of `pointwise_kernel`, over layout maps
  LayoutSpec bias_layout = {};       ///< layout of `bias`; overrides the layout map
  std::string name = "";             ///< first component of the weights' paths
  std::string dtype = "";            ///< dtype policy (default: the global policy)
  bool trainable = true;             ///< whether training changes the weights
};

/// A depthwise convolution over sequences, then a pointwise convolution that mixes channels
/// (keras.layers.SeparableConv1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', filters), as data_format orders the axes.
/// Weights: depthwise_kernel (kernel_size, channels, depth_multiplier), pointwise_kernel
/// (1, channels · depth_multiplier, filters), bias (filters).
/// Communication: see SeparableConv2D, here with the axis of steps.
class SeparableConv1D : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size` steps. Throws ConfigError for incompatible
  /// arguments or an unknown name.
  SeparableConv1D(int64_t filters, const AxisValues& kernel_size,
                  const SeparableConvOptions& options = {});
};

/// A depthwise convolution over images, then a pointwise convolution that mixes channels
/// (keras.layers.SeparableConv2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', filters), as data_format
/// orders the axes.
/// Weights: depthwise_kernel (window height, window width, channels, depth_multiplier),
/// pointwise_kernel (1, 1, channels · depth_multiplier, filters), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; a sharded height or width fetches
/// halo rows from its neighbours; sharded channels cost one all-reduce of the output.
class SeparableConv2D : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size`, {3, 5} or 3 for both axes. Throws
  /// ConfigError for incompatible arguments or an unknown name.
  SeparableConv2D(int64_t filters, const AxisValues& kernel_size,
                  const SeparableConvOptions& options = {});
};

}  // namespace tessera
