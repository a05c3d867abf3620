#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of Conv1DTranspose and Conv2DTranspose.
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

}  // namespace tessera
