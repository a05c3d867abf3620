#pragma once

#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of DepthwiseConv1D and DepthwiseConv2D.
struct DepthwiseConvOptions {
  AxisValues strides = 1;            ///< stride of each spatial axis, or one for all
  std::string padding = "valid";     ///< "valid" or "same"
  int64_t depth_multiplier = 1;      ///< outputs per channel
  std::string data_format = "";      ///< "channels_last" (default) or "channels_first"
  AxisValues dilation_rate = 1;      ///< dilation of the kernel
  ActivationHandle activation = {};  ///< Keras' name of the output activation (default: none)
  bool use_bias = true;              ///< whether to add `bias`
  InitializerHandle depthwise_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle bias_initializer = "zeros";                ///< initializer of `bias`
  RegularizerHandle depthwise_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle bias_regularizer = {};                     ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};                 ///< penalty on the output, per row
  ConstraintHandle depthwise_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle bias_constraint = {};                       ///< constraint on `bias`
  LayoutSpec kernel_layout = {};  ///< layout of `kernel`; overrides the layout map
  LayoutSpec bias_layout = {};    ///< layout of `bias`; overrides the layout map
  std::string name = "";          ///< first component of the weights' paths
  std::string dtype = "";         ///< dtype policy (default: the global policy)
  bool trainable = true;          ///< whether training changes the weights
};

/// A depthwise convolution over sequences: each channel has its own depth_multiplier kernels
/// (keras.layers.DepthwiseConv1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', channels · depth_multiplier), as data_format
/// orders the axes.
/// Weights: kernel (kernel_size, channels, depth_multiplier), bias (channels · depth_multiplier).
/// Communication: see DepthwiseConv2D, here with the axis of steps.
class DepthwiseConv1D : public LayerHandle {
 public:
  /// Windows of `kernel_size` steps. Throws ConfigError for incompatible arguments or an unknown
  /// name.
  explicit DepthwiseConv1D(const AxisValues& kernel_size, const DepthwiseConvOptions& options = {});
};

/// A depthwise convolution over images: each channel has its own depth_multiplier kernels
/// (keras.layers.DepthwiseConv2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width',
/// channels · depth_multiplier), as data_format orders the axes.
/// Weights: kernel (window height, window width, channels, depth_multiplier), bias
/// (channels · depth_multiplier).
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// halo rows from its neighbours.
class DepthwiseConv2D : public LayerHandle {
 public:
  /// Windows of `kernel_size`, {3, 5} or 3 for both axes. Throws ConfigError for incompatible
  /// arguments or an unknown name.
  explicit DepthwiseConv2D(const AxisValues& kernel_size, const DepthwiseConvOptions& options = {});
};

}  // namespace tessera
