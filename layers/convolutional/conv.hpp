#pragma once

#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of Conv1D, Conv2D and Conv3D.
struct ConvOptions {
  AxisValues strides = 1;            ///< steps from one window to the next, for all axes or each
  std::string padding = "valid";     ///< "valid", "same"; Conv1D also "causal"
  std::string data_format = "";      ///< "channels_last", as if empty, or "channels_first"
  AxisValues dilation_rate = 1;      ///< steps from one cell of a window to the next
  int64_t groups = 1;                ///< parts of the channels that have kernels of their own
  ActivationHandle activation = {};  ///< applied to the outputs, by Keras' name; none by default
  bool use_bias = true;              ///< adds `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< first values of `kernel`
  InitializerHandle bias_initializer = "zeros";             ///< first values of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};  ///< penalty on the output, divided by the rows
  ConstraintHandle kernel_constraint = {};      ///< what `kernel` is brought back to
  ConstraintHandle bias_constraint = {};        ///< what `bias` is brought back to
  LayoutSpec kernel_layout = {};                ///< layout of `kernel`, over any layout map
  LayoutSpec bias_layout = {};                  ///< layout of `bias`, over any layout map
  std::string name = "";                        ///< first part of the weights' paths
  std::string dtype = "";                       ///< policy; the default one if empty
  bool trainable = true;                        ///< whether training changes the weights
};

/// A convolution of sequences, activation(windows of x · kernel + bias) (keras.layers.Conv1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', filters), as data_format orders the axes.
/// With padding "causal" an output reads no later step.
/// Weights: kernel (kernel_size, channels / groups, filters), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; sharded steps fetch from their
/// neighbours what the windows read; sharded channels cost one all-reduce of the output.
class Conv1D : public LayerHandle {
 public:
  /// `filters` outputs a window of `kernel_size` steps. Throws ConfigError for arguments that do
  /// not go together or an unknown name.
  Conv1D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {});
};

/// A convolution of images, activation(windows of x · kernel + bias) (keras.layers.Conv2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', filters), as data_format
/// orders the axes. An extent n becomes ceil(n / stride) with padding "same", and with "valid" as
/// many windows as fit.
/// Weights: kernel (window height, window width, channels / groups, filters), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; a sharded height or width fetches
/// from its neighbours the rows that the windows read; sharded channels, as the kernel's then are,
/// cost one all-reduce of the output.
///
///     Conv2D(32, 3, {.padding = "same", .activation = "relu"})
class Conv2D : public LayerHandle {
 public:
  /// `filters` outputs a window of `kernel_size`, {3, 5} or 3 for both axes. Throws ConfigError for
  /// arguments that do not go together or an unknown name.
  Conv2D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {});
};

/// A convolution of volumes, activation(windows of x · kernel + bias) (keras.layers.Conv3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth', height', width', filters), as
/// data_format orders the axes.
/// Weights: kernel (window…, channels / groups, filters), bias (filters).
/// Communication: as Conv2D, with three axes that may be sharded.
class Conv3D : public LayerHandle {
 public:
  /// `filters` outputs a window of `kernel_size`, one number for each axis or for all. Throws
  /// ConfigError for arguments that do not go together or an unknown name.
  Conv3D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {});
};

}  // namespace tessera
