#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of SpatialDropout1D, SpatialDropout2D and SpatialDropout3D.
struct SpatialDropoutOptions {
  /// "channels_last", or, in 2D and 3D, "channels_first".
  std::string data_format = "channels_last";
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Channel dropout for sequences: in training, zeroes each channel of each row with probability
/// `rate` and scales the rest by 1 / (1 - rate) (keras.layers.SpatialDropout1D; Tompson, 2014). The
/// choice depends on global indices only: it is the same on every mesh.
///
/// Shape: (batch, steps, channels) -> (batch, steps, channels). The mask passes through. Throws
/// ShapeError for an input of another rank.
/// Communication: none.
///
///     SpatialDropout1D(0.2)
class SpatialDropout1D : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1, and for a data_format other than "channels_last".
  explicit SpatialDropout1D(double rate, const SpatialDropoutOptions& options = {});
};

/// Channel dropout for images: in training, zeroes each channel of each row with probability `rate`
/// and scales the rest by 1 / (1 - rate) (keras.layers.SpatialDropout2D; Tompson, 2014). The choice
/// depends on global indices only: it is the same on every mesh.
///
/// Shape: (batch, height, width, channels), or (batch, channels, height, width) with
/// "channels_first"; shape and mask pass through. Throws ShapeError for an input of another rank.
/// Communication: none.
///
///     SpatialDropout2D(0.2)
class SpatialDropout2D : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1, and for an unknown data_format.
  explicit SpatialDropout2D(double rate, const SpatialDropoutOptions& options = {});
};

/// Channel dropout for volumes: in training, zeroes each channel of each row with probability
/// `rate` and scales the rest by 1 / (1 - rate) (keras.layers.SpatialDropout3D; Tompson, 2014). The
/// choice depends on global indices only: it is the same on every mesh.
///
/// Shape: (batch, depth, height, width, channels), or (batch, channels, depth, height, width) with
/// "channels_first"; shape and mask pass through. Throws ShapeError for an input of another rank.
/// Communication: none.
///
///     SpatialDropout3D(0.2)
class SpatialDropout3D : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1, and for an unknown data_format.
  explicit SpatialDropout3D(double rate, const SpatialDropoutOptions& options = {});
};

}  // namespace tessera
