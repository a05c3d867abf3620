#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of Conv1D, Conv2D and Conv3D.
struct ConvOptions {
  AxisValues strides = 1;            ///< stride of each spatial axis, or one for all
  std::string padding = "valid";     ///< "valid", "same"; Conv1D also "causal"
  std::string data_format = "";      ///< "channels_last" (default) or "channels_first"
  AxisValues dilation_rate = 1;      ///< dilation of the kernel
  int64_t groups = 1;                ///< groups of channels, each with its own kernels
  ActivationHandle activation = {};  ///< Keras' name of the output activation (default: none)
  bool use_bias = true;              ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};              ///< penalty on the output, per row
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  LayoutSpec kernel_layout = {};  ///< layout of `kernel`; overrides the layout map
  LayoutSpec bias_layout = {};    ///< layout of `bias`; overrides the layout map
  std::string name = "";          ///< first component of the weights' paths
  std::string dtype = "";         ///< dtype policy (default: the global policy)
  bool trainable = true;          ///< whether training changes the weights
};

/// A convolution over sequences, activation(conv(x, kernel) + bias) (keras.layers.Conv1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', filters), as data_format orders the axes.
/// With padding "causal", an output reads no later step.
/// Weights: kernel (kernel_size, channels / groups, filters), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; sharded steps fetch their halo
/// from their neighbours; sharded channels cost one all-reduce of the output.
class Conv1D : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size` steps. Throws ConfigError for incompatible
  /// arguments or an unknown name.
  Conv1D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {});
};

/// A convolution over images, activation(conv(x, kernel) + bias) (keras.layers.Conv2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', filters), as data_format
/// orders the axes. An extent n becomes ceil(n / stride) with padding "same", and the number of
/// windows that fit with "valid".
/// Weights: kernel (window height, window width, channels / groups, filters), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; a sharded height or width fetches
/// halo rows from its neighbours; sharded channels, which shard the kernel's too, cost one
/// all-reduce of the output.
///
///     Conv2D(32, 3, {.padding = "same", .activation = "relu"})
class Conv2D : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size`, {3, 5} or 3 for both axes. Throws
  /// ConfigError for incompatible arguments or an unknown name.
  Conv2D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {});
};

/// A convolution over volumes, activation(conv(x, kernel) + bias) (keras.layers.Conv3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth', height', width', filters), as
/// data_format orders the axes.
/// Weights: kernel (window…, channels / groups, filters), bias (filters).
/// Communication: see Conv2D, here with three axes that may be sharded.
class Conv3D : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size`, one integer per axis or one for all.
  /// Throws ConfigError for incompatible arguments or an unknown name.
  Conv3D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {});
};

/// Keras' other names.
using Convolution1D = Conv1D;
using Convolution2D = Conv2D;
using Convolution3D = Conv3D;

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

/// Keras' other names.
using SeparableConvolution1D = SeparableConv1D;
using SeparableConvolution2D = SeparableConv2D;

/// Options of Conv1DTranspose, Conv2DTranspose and Conv3DTranspose.
struct ConvTransposeOptions {
  AxisValues strides = 1;         ///< upsampling factor per spatial axis, or one for all
  std::string padding = "valid";  ///< "valid" or "same"
  std::optional<AxisValues> output_padding = std::nullopt;  ///< below strides (default: maximum)
  std::string data_format = "";      ///< "channels_last" (default) or "channels_first"
  AxisValues dilation_rate = 1;      ///< dilation of the kernel
  ActivationHandle activation = {};  ///< Keras' name of the output activation (default: none)
  bool use_bias = true;              ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};              ///< penalty on the output, per row
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  LayoutSpec kernel_layout = {};  ///< layout of `kernel`; overrides the layout map
  LayoutSpec bias_layout = {};    ///< layout of `bias`; overrides the layout map
  std::string name = "";          ///< first component of the weights' paths
  std::string dtype = "";         ///< dtype policy (default: the global policy)
  bool trainable = true;          ///< whether training changes the weights
};

/// A transposed convolution over sequences: the adjoint of Conv1D, then bias and activation
/// (keras.layers.Conv1DTranspose).
///
/// Shape: (batch, steps, channels) -> (batch, steps', filters), as data_format orders the axes.
/// Weights: kernel (kernel_size, filters, channels), bias (filters).
/// Communication: see Conv1D.
class Conv1DTranspose : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size` steps. Throws ConfigError for incompatible
  /// arguments or an unknown name.
  Conv1DTranspose(int64_t filters, const AxisValues& kernel_size,
                  const ConvTransposeOptions& options = {});
};

/// A transposed convolution over images: the adjoint of Conv2D, then bias and activation
/// (keras.layers.Conv2DTranspose).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', filters), as data_format
/// orders the axes. An extent n becomes n · stride with padding "same"; "valid" adds what the
/// window spans beyond one stride.
/// Weights: kernel (window height, window width, filters, channels), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; a sharded height or width fetches
/// halo rows from its neighbours; sharded channels cost one all-reduce of the output.
///
///     Conv2DTranspose(16, 3, {.strides = 2, .padding = "same"})   // doubles height and width
class Conv2DTranspose : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size`, {3, 5} or 3 for both axes. Throws
  /// ConfigError for incompatible arguments or an unknown name.
  Conv2DTranspose(int64_t filters, const AxisValues& kernel_size,
                  const ConvTransposeOptions& options = {});
};

/// A transposed convolution over volumes: the adjoint of Conv3D, then bias and activation
/// (keras.layers.Conv3DTranspose).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth', height', width', filters), as
/// data_format orders the axes; extents as for Conv2DTranspose.
/// Weights: kernel (window…, filters, channels), bias (filters).
/// Communication: see Conv2DTranspose, here with three axes that may be sharded.
class Conv3DTranspose : public LayerHandle {
 public:
  /// `filters` output channels; windows of `kernel_size`, one integer per axis or one for all.
  /// Throws ConfigError for incompatible arguments or an unknown name.
  Conv3DTranspose(int64_t filters, const AxisValues& kernel_size,
                  const ConvTransposeOptions& options = {});
};

/// Keras' other names.
using Convolution1DTranspose = Conv1DTranspose;
using Convolution2DTranspose = Conv2DTranspose;
using Convolution3DTranspose = Conv3DTranspose;

}  // namespace tessera
