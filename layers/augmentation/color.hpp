#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// The options of AutoContrast.
struct AutoContrastOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Stretches each channel of each image to the full value range, in training and outside it
/// (keras.layers.AutoContrast). A channel of equal values is unchanged.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the minima and maxima if height or width is sharded.
class AutoContrast : public AugmentationHandle {
 public:
  /// Throws ConfigError unless value_range holds two numbers.
  explicit AutoContrast(const AutoContrastOptions& options = {});
};

/// The options of ContrastLimitedAdaptiveHistogramEqualization.
struct ContrastLimitedAdaptiveHistogramEqualizationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  double clip_limit = 4;          ///< most counts of a bin, in mean counts (0 or below: no limit)
  AxisValues tile_grid_size = 8;  ///< tiles along height and width, or one number for both
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";       ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                      ///< first component of the weights' paths
  std::string dtype = "";                     ///< dtype policy (default: the global policy)
  bool trainable = true;                      ///< whether training changes the weights
};

/// Equalizes the histograms of each channel's tiles, of which each pixel interpolates the nearest
/// four, in training and outside it (keras.layers.ContrastLimitedAdaptiveHistogramEqualization).
/// Counts of a bin above the limit are spread over all bins. No gradient passes.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the histograms if height or width is sharded; none for batch or channels.
class ContrastLimitedAdaptiveHistogramEqualization : public AugmentationHandle {
 public:
  /// Throws ConfigError for an empty grid, and unless value_range holds two numbers.
  explicit ContrastLimitedAdaptiveHistogramEqualization(
      const ContrastLimitedAdaptiveHistogramEqualizationOptions& options = {});
};

/// The options of Equalization.
struct EqualizationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  int64_t bins = 256;                          ///< number of histogram bins
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Equalizes each channel's histogram over the batch in training (keras.layers.Equalization). A
/// channel within one bin is unchanged. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the histograms if batch, height or width is sharded.
class Equalization : public AugmentationHandle {
 public:
  /// Throws ConfigError for fewer than two bins, and unless value_range holds two numbers.
  explicit Equalization(const EqualizationOptions& options = {});
};

/// The options of RandomBrightness.
struct RandomBrightnessOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Adds a random fraction of the value range to each image in training and clips to that range
/// (keras.layers.RandomBrightness). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomBrightness(0.2, {.value_range = {0, 1}})
class RandomBrightness : public AugmentationHandle {
 public:
  /// The fraction is drawn from `factor`; one number f stands for {-f, f}. Throws ConfigError for
  /// factors outside [-1, 1].
  explicit RandomBrightness(const Factor& factor, const RandomBrightnessOptions& options = {});
};

/// The options of RandomColorDegeneration.
struct RandomColorDegenerationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Blends RGB images with their grayscale version by a random weight in training
/// (keras.layers.RandomColorDegeneration). Draws depend on the global row, so results are the same
/// on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomColorDegeneration({0, 0.5})
class RandomColorDegeneration : public AugmentationHandle {
 public:
  /// The weight of the grayscale version is drawn from `factor`; one number f stands for {-f, f}.
  /// Throws ConfigError for factors outside [-1, 1].
  explicit RandomColorDegeneration(const Factor& factor,
                                   const RandomColorDegenerationOptions& options = {});
};

/// The options of RandomColorJitter.
struct RandomColorJitterOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  /// Factor of RandomBrightness (default: brightness is unchanged); the next three likewise.
  std::optional<Factor> brightness_factor = std::nullopt;
  std::optional<Factor> contrast_factor = std::nullopt;    ///< factor of RandomContrast
  std::optional<Factor> saturation_factor = std::nullopt;  ///< factor of RandomSaturation
  std::optional<Factor> hue_factor = std::nullopt;         ///< factor of RandomHue
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Changes brightness, contrast, saturation and hue of RGB images at random in training, in this
/// order (keras.layers.RandomColorJitter). Draws depend on the global row, so results are the same
/// on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the means if height or width is sharded; none for batch or channels.
///
///     RandomColorJitter({.brightness_factor = 0.2, .hue_factor = 0.1})
class RandomColorJitter : public AugmentationHandle {
 public:
  /// Throws ConfigError where one of the four layers does.
  explicit RandomColorJitter(const RandomColorJitterOptions& options = {});
};

/// The options of RandomContrast.
struct RandomContrastOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Scales the contrast of images at random in training: (x - mean) · c + mean, clipped to the value
/// range, with the mean of each image and channel and c drawn for each image
/// (keras.layers.RandomContrast). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the means if height or width is sharded; none for batch or channels.
///
///     RandomContrast(0.2)
class RandomContrast : public AugmentationHandle {
 public:
  /// c is drawn from [1 - lo, 1 + hi] for `factor` {lo, hi}; one number f stands for {0, f}. Throws
  /// ConfigError for factors outside [0, 1].
  explicit RandomContrast(const Factor& factor, const RandomContrastOptions& options = {});
};

/// The options of RandomGaussianBlur.
struct RandomGaussianBlurOptions {
  AxisValues kernel_size = 3;  ///< odd width and height of the kernel, or one number for both
  Factor sigma = 1.0;          ///< standard deviations in pixels, in [0, 1]
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Blurs images at random in training (keras.layers.RandomGaussianBlur), with a standard deviation
/// for each axis drawn for the batch, and clips to the value range. Draws depend on the global row,
/// so results are the same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the halos if height or width is sharded.
///
///     RandomGaussianBlur(0.5, {.kernel_size = 5})
class RandomGaussianBlur : public AugmentationHandle {
 public:
  /// An image is blurred with a probability drawn from `factor`; one number f stands for {0, f}.
  /// Throws ConfigError for a factor or sigma outside [0, 1] and an even kernel_size.
  explicit RandomGaussianBlur(const Factor& factor = 1.0,
                              const RandomGaussianBlurOptions& options = {});
};

/// The options of RandomGrayscale.
struct RandomGrayscaleOptions {
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Converts RGB images to grayscale at random in training, with three equal channels
/// (keras.layers.RandomGrayscale). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomGrayscale(0.2)
class RandomGrayscale : public AugmentationHandle {
 public:
  /// Converts an image with probability `factor`. Throws ConfigError for a factor outside [0, 1].
  explicit RandomGrayscale(double factor = 0.5, const RandomGrayscaleOptions& options = {});
};

/// The options of RandomHue.
struct RandomHueOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Rotates the hue of RGB images at random in training, by one angle for each image
/// (keras.layers.RandomHue). Draws depend on the global row, so results are the same on every mesh.
/// Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomHue(0.2, {.value_range = {0, 1}})
class RandomHue : public AugmentationHandle {
 public:
  /// The angle is f / 2 of a full circle in a random direction, f drawn from `factor`; one number f
  /// stands for {0, f}. Throws ConfigError for factors outside [0, 1].
  explicit RandomHue(const Factor& factor, const RandomHueOptions& options = {});
};

/// The options of RandomInvert.
struct RandomInvertOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Inverts images at random in training: the minimum becomes the maximum of the value range and the
/// reverse (keras.layers.RandomInvert). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
class RandomInvert : public AugmentationHandle {
 public:
  /// An image is inverted with a probability drawn from `factor`; one number f stands for {0, f}.
  /// Throws ConfigError for factors outside [0, 1].
  explicit RandomInvert(const Factor& factor = 1.0, const RandomInvertOptions& options = {});
};

/// The options of RandomPosterization.
struct RandomPosterizationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Reduces image values of eight bits to fewer in training, a random number for each image
/// (keras.layers.RandomPosterization). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training. No gradient passes.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomPosterization({3, 6})
class RandomPosterization : public AugmentationHandle {
 public:
  /// The number of bits is drawn from [lo, hi) for `factor` {lo, hi}, and is lo if they are equal;
  /// one number f stands for {1, f}. Throws ConfigError for factors outside [1, 8].
  explicit RandomPosterization(const Factor& factor,
                               const RandomPosterizationOptions& options = {});
};

/// The options of RandomSaturation.
struct RandomSaturationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Scales the saturation of RGB images at random in training, by one factor for each image
/// (keras.layers.RandomSaturation). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomSaturation({0.4, 0.6})
class RandomSaturation : public AugmentationHandle {
 public:
  /// The saturation is multiplied by f / (1 - f), f drawn from `factor`, so that 1/2 changes
  /// nothing; one number f stands for {-f, f}. Throws ConfigError for factors outside [-1, 1].
  explicit RandomSaturation(const Factor& factor, const RandomSaturationOptions& options = {});
};

/// The options of RandomSharpness.
struct RandomSharpnessOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Blurs or sharpens images at random in training (keras.layers.RandomSharpness). Draws depend on
/// the global row, so results are the same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the halos if height or width is sharded.
///
///     RandomSharpness({0.2, 0.8})
class RandomSharpness : public AugmentationHandle {
 public:
  /// Returns 2 f · image + (1 - 2 f) · blurred image, f drawn from `factor`: 1/2 changes nothing,
  /// less blurs, more sharpens. One number f stands for {0, f}. Throws ConfigError for factors
  /// outside [0, 1].
  explicit RandomSharpness(const Factor& factor, const RandomSharpnessOptions& options = {});
};

/// The options of Solarization.
struct SolarizationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Adds a random value to images in training and inverts values from a random threshold on
/// (keras.layers.Solarization). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     Solarization(0, 0.5)
class Solarization : public AugmentationHandle {
 public:
  /// Addition and threshold are drawn from [lo, 255 · hi) for their factor {lo, hi}, for values in
  /// [0, 255]; one number f stands for {0, f}. Throws ConfigError for factors outside [0, 1].
  explicit Solarization(const Factor& addition_factor = 0.0, const Factor& threshold_factor = 0.0,
                        const SolarizationOptions& options = {});
};

}  // namespace tessera
