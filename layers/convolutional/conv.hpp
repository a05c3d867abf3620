#pragma once

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

}  // namespace tessera
