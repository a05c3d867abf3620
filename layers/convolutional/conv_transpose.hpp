#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of Conv1DTranspose and Conv2DTranspose.
struct ConvTransposeOptions {
  AxisValues strides = 1;         ///< factor by which an extent grows, for all axes or each
  std::string padding = "valid";  ///< "valid" or "same"
  std::optional<AxisValues> output_padding = std::nullopt;  ///< below the strides; most if absent
  std::string data_format = "";      ///< "channels_last", as if empty, or "channels_first"
  AxisValues dilation_rate = 1;      ///< steps from one cell of a window to the next
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

/// A transposed convolution of sequences, the adjoint of Conv1D with bias and activation
/// (keras.layers.Conv1DTranspose).
///
/// Shape: (batch, steps, channels) -> (batch, steps', filters), as data_format orders the axes.
/// Weights: kernel (kernel_size, filters, channels), bias (filters).
/// Communication: as Conv1D.
class Conv1DTranspose : public LayerHandle {
 public:
  /// `filters` outputs from windows of `kernel_size` steps. Throws ConfigError for arguments that
  /// do not go together or an unknown name.
  Conv1DTranspose(int64_t filters, const AxisValues& kernel_size,
                  const ConvTransposeOptions& options = {});
};

/// A transposed convolution of images, the adjoint of Conv2D with bias and activation
/// (keras.layers.Conv2DTranspose).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', filters), as data_format
/// orders the axes. An extent n becomes n · stride with padding "same", and with "valid" that and
/// what the window reaches beyond a stride.
/// Weights: kernel (window height, window width, filters, channels), bias (filters).
/// Communication: none for a sharded batch or sharded `filters`; a sharded height or width fetches
/// from its neighbours the rows that windows share; sharded channels cost one all-reduce of the
/// output.
///
///     Conv2DTranspose(16, 3, {.strides = 2, .padding = "same"})   // doubles height and width
class Conv2DTranspose : public LayerHandle {
 public:
  /// `filters` outputs from windows of `kernel_size`, {3, 5} or 3 for both axes. Throws ConfigError
  /// for arguments that do not go together or an unknown name.
  Conv2DTranspose(int64_t filters, const AxisValues& kernel_size,
                  const ConvTransposeOptions& options = {});
};

}  // namespace tessera
