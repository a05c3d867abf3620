#pragma once

#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of DepthwiseConv1D and DepthwiseConv2D.
struct DepthwiseConvOptions {
  AxisValues strides = 1;            ///< steps from one window to the next, for all axes or each
  std::string padding = "valid";     ///< "valid" or "same"
  int64_t depth_multiplier = 1;      ///< outputs for each channel
  std::string data_format = "";      ///< "channels_last", as if empty, or "channels_first"
  AxisValues dilation_rate = 1;      ///< steps from one cell of a window to the next
  ActivationHandle activation = {};  ///< applied to the outputs, by Keras' name; none by default
  bool use_bias = true;              ///< adds `bias`
  InitializerHandle depthwise_initializer = "glorot_uniform";  ///< first values of `kernel`
  InitializerHandle bias_initializer = "zeros";                ///< first values of `bias`
  RegularizerHandle depthwise_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle bias_regularizer = {};                     ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};  ///< penalty on the output, divided by the rows
  ConstraintHandle depthwise_constraint = {};   ///< what `kernel` is brought back to
  ConstraintHandle bias_constraint = {};        ///< what `bias` is brought back to
  LayoutSpec kernel_layout = {};                ///< layout of `kernel`, over any layout map
  LayoutSpec bias_layout = {};                  ///< layout of `bias`, over any layout map
  std::string name = "";                        ///< first part of the weights' paths
  std::string dtype = "";                       ///< policy; the default one if empty
  bool trainable = true;                        ///< whether training changes the weights
};

/// A convolution of sequences, each channel alone with depth_multiplier kernels of its own
/// (keras.layers.DepthwiseConv1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', channels · depth_multiplier), as data_format
/// orders the axes.
/// Weights: kernel (kernel_size, channels, depth_multiplier), bias (channels · depth_multiplier).
/// Communication: as DepthwiseConv2D, with one axis of steps.
class DepthwiseConv1D : public LayerHandle {
 public:
  /// Windows of `kernel_size` steps. Throws ConfigError for arguments that do not go together or an
  /// unknown name.
  explicit DepthwiseConv1D(const AxisValues& kernel_size, const DepthwiseConvOptions& options = {});
};

/// A convolution of images, each channel alone with depth_multiplier kernels of its own
/// (keras.layers.DepthwiseConv2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width',
/// channels · depth_multiplier), as data_format orders the axes.
/// Weights: kernel (window height, window width, channels, depth_multiplier), bias
/// (channels · depth_multiplier).
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// from its neighbours the rows that the windows read.
class DepthwiseConv2D : public LayerHandle {
 public:
  /// Windows of `kernel_size`, {3, 5} or 3 for both axes. Throws ConfigError for arguments that do
  /// not go together or an unknown name.
  explicit DepthwiseConv2D(const AxisValues& kernel_size, const DepthwiseConvOptions& options = {});
};

}  // namespace tessera
