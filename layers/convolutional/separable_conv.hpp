#pragma once

#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of SeparableConv1D and SeparableConv2D.
struct SeparableConvOptions {
  AxisValues strides = 1;            ///< steps from one window to the next, for all axes or each
  std::string padding = "valid";     ///< "valid" or "same"
  std::string data_format = "";      ///< "channels_last", as if empty, or "channels_first"
  AxisValues dilation_rate = 1;      ///< steps from one cell of a window to the next
  int64_t depth_multiplier = 1;      ///< outputs for each channel, before all are mixed
  ActivationHandle activation = {};  ///< applied to the outputs, by Keras' name; none by default
  bool use_bias = true;              ///< adds `bias`
  InitializerHandle depthwise_initializer = "glorot_uniform";  ///< first values of depthwise_kernel
  InitializerHandle pointwise_initializer = "glorot_uniform";  ///< first values of pointwise_kernel
  InitializerHandle bias_initializer = "zeros";                ///< first values of `bias`
  RegularizerHandle depthwise_regularizer = {};                ///< penalty on `depthwise_kernel`
  RegularizerHandle pointwise_regularizer = {};                ///< penalty on `pointwise_kernel`
  RegularizerHandle bias_regularizer = {};                     ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};  ///< penalty on the output, divided by the rows
  ConstraintHandle depthwise_constraint = {};   ///< what `depthwise_kernel` is brought back to
  ConstraintHandle pointwise_constraint = {};   ///< what `pointwise_kernel` is brought back to
  ConstraintHandle bias_constraint = {};        ///< what `bias` is brought back to
  LayoutSpec depthwise_layout = {};             ///< layout of `depthwise_kernel`, over layout maps
  LayoutSpec pointwise_layout = {};             ///< layout of `pointwise_kernel`, over layout maps
  LayoutSpec bias_layout = {};                  ///< layout of `bias`, over any layout map
  std::string name = "";                        ///< first part of the weights' paths
  std::string dtype = "";                       ///< policy; the default one if empty
  bool trainable = true;                        ///< whether training changes the weights
};

/// A convolution of sequences, each channel alone and then all mixed at each step
/// (keras.layers.SeparableConv1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', filters), as data_format orders the axes.
/// Weights: depthwise_kernel (kernel_size, channels, depth_multiplier), pointwise_kernel
/// (1, channels · depth_multiplier, filters), bias (filters).
/// Communication: as SeparableConv2D, with one axis of steps.
class SeparableConv1D : public LayerHandle {
 public:
  /// `filters` outputs a window of `kernel_size` steps. Throws ConfigError for arguments that do
  /// not go together or an unknown name.
  SeparableConv1D(int64_t filters, const AxisValues& kernel_size,
                  const SeparableConvOptions& options = {});
};

/// A convolution of images, each channel alone and then all mixed at each place
/// (keras.layers.SeparableConv2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', filters), as data_format
/// orders the axes.
/// Weights: depthwise_kernel (window height, window width, channels, depth_multiplier),
/// pointwise_kernel (1, 1, channels · depth_multiplier, filters), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; a sharded height or width fetches
/// from its neighbours the rows that the windows read; sharded channels cost one all-reduce of the
/// output.
class SeparableConv2D : public LayerHandle {
 public:
  /// `filters` outputs a window of `kernel_size`, {3, 5} or 3 for both axes. Throws ConfigError for
  /// arguments that do not go together or an unknown name.
  SeparableConv2D(int64_t filters, const AxisValues& kernel_size,
                  const SeparableConvOptions& options = {});
};

}  // namespace tessera
