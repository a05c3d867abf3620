#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomCrop.
struct RandomCropOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Crops images to (height, width), in training at a random position drawn for the batch
/// (keras.layers.RandomCrop). Outside training, and unless the images are larger than the crop in
/// both axes, resizes a centre crop instead, which has the target's aspect ratio as far as
/// possible.
///
/// Shape: (batch, h, w, channels) -> (batch, height, width, channels); data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomCrop(224, 224)
class RandomCrop : public AugmentationHandle {
 public:
  /// Throws ConfigError for a height or width below 1.
  explicit RandomCrop(int64_t height, int64_t width, const RandomCropOptions& options = {});
};

/// The options of RandomElasticTransform.
struct RandomElasticTransformOptions {
  Factor scale = 1.0;                          ///< strength of the distortion, in [0, 1]
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::string fill_mode = "reflect";           ///< or "constant", "mirror", "nearest", "wrap"
  double fill_value = 0;                       ///< value beyond the edges if "constant"
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Distorts images at random in training (keras.layers.RandomElasticTransform): each pixel moves by
/// normal noise that a Gaussian blur has made smooth. With a strength s, drawn for the batch, the
/// blur's standard deviation is s / 20 of the smaller of height and width, by which the noise is
/// multiplied, and by s / 10 of the larger. Draws depend on the global row, so results are the same
/// on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: an all-reduce of the images' pixels if height or width is sharded; none for
/// batch or channels.
///
///     RandomElasticTransform(0.5, {.scale = {0.2, 0.8}})
class RandomElasticTransform : public AugmentationHandle {
 public:
  /// An image is distorted with a probability drawn from `factor`; one number f stands for {0, f}.
  /// Throws ConfigError for a factor or scale outside [0, 1] and for unknown modes. Bounding boxes
  /// are refused, as in Keras; masks move with the images.
  explicit RandomElasticTransform(const Factor& factor = 1.0,
                                  const RandomElasticTransformOptions& options = {});
};

/// The options of RandomFlip.
struct RandomFlipOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Flips each image with probability 1/2 in training (keras.layers.RandomFlip): left to right, top
/// to bottom or, as in Keras, both at once. Draws depend on the global row, so results are the same
/// on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomFlip("horizontal")
class RandomFlip : public AugmentationHandle {
 public:
  /// `mode`: "horizontal", "vertical" or "horizontal_and_vertical". Throws ConfigError for another.
  explicit RandomFlip(const std::string& mode = "horizontal_and_vertical",
                      const RandomFlipOptions& options = {});
};

/// The options of RandomPerspective.
struct RandomPerspectiveOptions {
  std::string interpolation = "bilinear";      ///< or "nearest"
  double fill_value = 0;                       ///< value beyond the edges
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Applies a random perspective transform to images in training (keras.layers.RandomPerspective),
/// which moves all corners but the upper left one. Draws depend on the global row, so results are
/// the same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomPerspective(0.5, 0.3)
class RandomPerspective : public AugmentationHandle {
 public:
  /// An image is changed with a probability drawn from `factor`; one number f stands for {0, f}.
  /// Corners move by up to scale / 2 of height and width. Throws ConfigError for a factor or scale
  /// outside [0, 1] and for an unknown interpolation.
  explicit RandomPerspective(const Factor& factor = 1.0, double scale = 1,
                             const RandomPerspectiveOptions& options = {});
};

/// The options of RandomRotation.
struct RandomRotationOptions {
  std::string fill_mode = "reflect";           ///< or "constant", "nearest", "wrap"
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  double fill_value = 0;                      ///< value beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";       ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                      ///< first component of the weights' paths
  std::string dtype = "";                     ///< dtype policy (default: the global policy)
  bool trainable = true;                      ///< whether training changes the weights
};

/// Rotates each image about its centre by a random angle in training (keras.layers.RandomRotation).
/// Draws depend on the global row, so results are the same on every mesh. Identity outside
/// training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomRotation(0.1)              // by up to 36 degrees either way
class RandomRotation : public AugmentationHandle {
 public:
  /// The angle, as a fraction of a full circle, is drawn from `factor` and counterclockwise if
  /// positive; one number f stands for {-f, f}. Throws ConfigError for factors outside [-1, 1] and
  /// for unknown modes.
  explicit RandomRotation(const Factor& factor, const RandomRotationOptions& options = {});
};

/// The options of RandomShear.
struct RandomShearOptions {
  std::string interpolation = "bilinear";     ///< or "nearest"
  std::string fill_mode = "reflect";          ///< or "constant", "nearest", "wrap"
  double fill_value = 0;                      ///< value beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Shears each image at random in training: x by a fraction of y, and y by a fraction of x
/// (keras.layers.RandomShear). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomShear(0.2, {0, 0.1})
class RandomShear : public AugmentationHandle {
 public:
  /// The fractions are drawn from the factors, and both change sign for half of the images; one
  /// number f stands for {-f, f}. Throws ConfigError for factors outside [-1, 1] and for unknown
  /// modes.
  explicit RandomShear(const Factor& x_factor = 0.0, const Factor& y_factor = 0.0,
                       const RandomShearOptions& options = {});
};

/// The options of RandomTranslation.
struct RandomTranslationOptions {
  std::string fill_mode = "reflect";           ///< or "constant", "nearest", "wrap"
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  double fill_value = 0;                      ///< value beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";       ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                      ///< first component of the weights' paths
  std::string dtype = "";                     ///< dtype policy (default: the global policy)
  bool trainable = true;                      ///< whether training changes the weights
};

/// Shifts each image down and to the right in training, by random fractions of its height and width
/// (keras.layers.RandomTranslation). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomTranslation(0.1, {-0.2, 0.3}, {.fill_mode = "constant"})
class RandomTranslation : public AugmentationHandle {
 public:
  /// The fractions are drawn from the factors; one number f stands for {-f, f}. Throws ConfigError
  /// for factors outside [-1, 1] and for unknown modes.
  explicit RandomTranslation(const Factor& height_factor, const Factor& width_factor,
                             const RandomTranslationOptions& options = {});
};

/// The options of RandomZoom.
struct RandomZoomOptions {
  /// Factor of the width (default: the height's draw, which keeps the aspect ratio).
  std::optional<Factor> width_factor = std::nullopt;
  std::string fill_mode = "reflect";           ///< or "constant", "nearest", "wrap"
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  double fill_value = 0;                      ///< value beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";       ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                      ///< first component of the weights' paths
  std::string dtype = "";                     ///< dtype policy (default: the global policy)
  bool trainable = true;                      ///< whether training changes the weights
};

/// Zooms each image about its centre in training, by 1 + a random number (keras.layers.RandomZoom).
/// Draws depend on the global row, so results are the same on every mesh. Identity outside
/// training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomZoom({-0.3, -0.1}, {.width_factor = 0.2})
class RandomZoom : public AugmentationHandle {
 public:
  /// The number is drawn from `height_factor`: positive ones zoom out, negative ones in; one number
  /// f stands for {-f, f}. Throws ConfigError for factors outside (-1, 1] and for unknown modes.
  explicit RandomZoom(const Factor& height_factor, const RandomZoomOptions& options = {});
};

}  // namespace tessera
