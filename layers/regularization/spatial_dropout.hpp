#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of SpatialDropout1D, SpatialDropout2D and SpatialDropout3D.
struct SpatialDropoutOptions {
  /// "channels_last", or "channels_first" where axis 1 holds the channels, but not in 1D.
  std::string data_format = "channels_last";
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// In training, whole channels of a sample are 0 with probability `rate`, the others scaled by
/// 1 / (1 - rate) (keras.layers.SpatialDropout1D; Tompson, 2014). Which ones depends on the global
/// index: the same on every mesh.
///
/// Shape: (batch, steps, channels) -> (batch, steps, channels). The mask stays. Throws ShapeError
/// for an input of another rank.
/// Communication: none.
///
///     SpatialDropout1D(0.2)
class SpatialDropout1D : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1, and for another data_format than "channels_last".
  explicit SpatialDropout1D(double rate, const SpatialDropoutOptions& options = {});
};

/// In training, whole channels of a sample are 0 with probability `rate`, the others scaled by
/// 1 / (1 - rate) (keras.layers.SpatialDropout2D; Tompson, 2014). Which ones depends on the global
/// index: the same on every mesh.
///
/// Shape: (batch, height, width, channels), or (batch, channels, height, width) with
/// "channels_first", which stays, as does the mask. Throws ShapeError for an input of another rank.
/// Communication: none.
///
///     SpatialDropout2D(0.2)
class SpatialDropout2D : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1, and for another data_format.
  explicit SpatialDropout2D(double rate, const SpatialDropoutOptions& options = {});
};

/// In training, whole channels of a sample are 0 with probability `rate`, the others scaled by
/// 1 / (1 - rate) (keras.layers.SpatialDropout3D; Tompson, 2014). Which ones depends on the global
/// index: the same on every mesh.
///
/// Shape: (batch, depth, height, width, channels), or (batch, channels, depth, height, width) with
/// "channels_first", which stays, as does the mask. Throws ShapeError for an input of another rank.
/// Communication: none.
///
///     SpatialDropout3D(0.2)
class SpatialDropout3D : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1, and for another data_format.
  explicit SpatialDropout3D(double rate, const SpatialDropoutOptions& options = {});
};

}  // namespace tessera
