#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of AdaptiveAveragePooling1D, AdaptiveAveragePooling2D, AdaptiveAveragePooling3D,
/// AdaptiveMaxPooling1D, AdaptiveMaxPooling2D and AdaptiveMaxPooling3D.
struct AdaptivePoolingOptions {
  std::string data_format = "";  ///< "channels_last" (default) or "channels_first"
  std::string name = "";         ///< first component of the weights' paths
  std::string dtype = "";        ///< dtype policy (default: the global policy)
  bool trainable = true;         ///< whether training changes the weights
};

/// The mean of each channel in windows that cover a sequence evenly, as many as given
/// (keras.layers.AdaptiveAveragePooling1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', channels), as data_format orders the axes.
/// Windows and communication: see AdaptiveAveragePooling2D.
class AdaptiveAveragePooling1D : public LayerHandle {
 public:
  /// `output_size` steps. Throws ConfigError for sizes below 1.
  explicit AdaptiveAveragePooling1D(const AxisValues& output_size,
                                    const AdaptivePoolingOptions& options = {});
};

/// The mean of each channel in windows that cover an image evenly, as many as given
/// (keras.layers.AdaptiveAveragePooling2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', channels), as
/// data_format orders the axes.
/// Row i of the output is that of the rows in [floor(i · height / height'),
/// ceil((i + 1) · height / height')); so is a column.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// from its neighbours what the windows read.
///
///     AdaptiveAveragePooling2D(7)   // 7 by 7 means of images of any size
class AdaptiveAveragePooling2D : public LayerHandle {
 public:
  /// `output_size`, {3, 5} or 3 for both axes. Throws ConfigError for sizes below 1.
  explicit AdaptiveAveragePooling2D(const AxisValues& output_size,
                                    const AdaptivePoolingOptions& options = {});
};

/// The mean of each channel in windows that cover a volume evenly, as many as given
/// (keras.layers.AdaptiveAveragePooling3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth', height', width', channels), as
/// data_format orders the axes.
/// Windows and communication: see AdaptiveAveragePooling2D.
class AdaptiveAveragePooling3D : public LayerHandle {
 public:
  /// `output_size`, one integer per axis or one for all. Throws ConfigError for sizes below 1.
  explicit AdaptiveAveragePooling3D(const AxisValues& output_size,
                                    const AdaptivePoolingOptions& options = {});
};

/// The maximum of each channel in windows that cover a sequence evenly, as many as given
/// (keras.layers.AdaptiveMaxPooling1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', channels), as data_format orders the axes.
/// Windows and communication: see AdaptiveAveragePooling2D.
class AdaptiveMaxPooling1D : public LayerHandle {
 public:
  /// `output_size` steps. Throws ConfigError for sizes below 1.
  explicit AdaptiveMaxPooling1D(const AxisValues& output_size,
                                const AdaptivePoolingOptions& options = {});
};

/// The maximum of each channel in windows that cover an image evenly, as many as given
/// (keras.layers.AdaptiveMaxPooling2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', channels), as
/// data_format orders the axes.
/// Windows and communication: see AdaptiveAveragePooling2D.
class AdaptiveMaxPooling2D : public LayerHandle {
 public:
  /// `output_size`, {3, 5} or 3 for both axes. Throws ConfigError for sizes below 1.
  explicit AdaptiveMaxPooling2D(const AxisValues& output_size,
                                const AdaptivePoolingOptions& options = {});
};

/// The maximum of each channel in windows that cover a volume evenly, as many as given
/// (keras.layers.AdaptiveMaxPooling3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth', height', width', channels), as
/// data_format orders the axes.
/// Windows and communication: see AdaptiveAveragePooling2D.
class AdaptiveMaxPooling3D : public LayerHandle {
 public:
  /// `output_size`, one integer per axis or one for all. Throws ConfigError for sizes below 1.
  explicit AdaptiveMaxPooling3D(const AxisValues& output_size,
                                const AdaptivePoolingOptions& options = {});
};

}  // namespace tessera
