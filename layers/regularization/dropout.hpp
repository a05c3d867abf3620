#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Dropout.
struct DropoutOptions {
  /// Shape of the random choices, broadcast to x: {-1, 1, -1} makes one choice per column of each
  /// matrix. -1 is x's extent (Keras' None). Empty: x's shape.
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Dropout: in training, zeroes each element with probability `rate` and scales the others by
/// 1 / (1 - rate) (keras.layers.Dropout). The choice depends on global indices only: it is the same
/// on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an input that
/// the noise shape does not broadcast to.
/// Communication: none.
///
///     Dropout(0.2)
class Dropout : public LayerHandle {
 public:
  /// `rate`: the fraction of elements to drop. Throws ConfigError unless 0 <= rate < 1 and the
  /// noise shape holds -1 and extents from 1 on.
  explicit Dropout(double rate, const DropoutOptions& options = {});
};

/// The options of AlphaDropout.
struct AlphaDropoutOptions {
  /// Shape of the random choices, broadcast to x: {-1, 1, -1} makes one choice per column of each
  /// matrix. -1 is x's extent (Keras' None). Empty: x's shape.
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Dropout for selu: in training, sets each element to -1.7581, selu's limit at -∞, with
/// probability `rate`, then applies an affine transform that preserves mean 0 and variance 1
/// (keras.layers.AlphaDropout; Klambauer, 2017). The choice depends on global indices only: it is
/// the same on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an input that
/// the noise shape does not broadcast to.
/// Communication: none.
///
///     AlphaDropout(0.1)
class AlphaDropout : public LayerHandle {
 public:
  /// `rate`: the fraction of elements to drop. Throws ConfigError unless 0 <= rate < 1 and the
  /// noise shape holds -1 and extents from 1 on.
  explicit AlphaDropout(double rate, const AlphaDropoutOptions& options = {});
};

/// The options of GaussianDropout.
struct GaussianDropoutOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Multiplicative noise: in training, multiplies x by normal draws of mean 1 and standard deviation
/// sqrt(rate / (1 - rate)) (keras.layers.GaussianDropout). Draws depend on global indices only:
/// they are the same on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
///
///     GaussianDropout(0.2)
class GaussianDropout : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1.
  explicit GaussianDropout(double rate, const GaussianDropoutOptions& options = {});
};

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
