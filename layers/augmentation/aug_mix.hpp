#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of AugMix.
struct AugMixOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  int64_t num_chains = 3;                      ///< number of chains, whose images are mixed
  int64_t chain_depth = 3;                     ///< maximum number of augmentations in a chain
  Factor factor = 0.3;                         ///< their strength, in [0, 1]
  double alpha = 1;     ///< parameter of the weights' Dirichlet and beta distributions
  bool all_ops = true;  ///< whether brightness, colors, contrast and sharpness change, too
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Mixes each image with the results of num_chains chains of augmentations in training
/// (keras.layers.AugMix). Each of a chain's chain_depth steps is drawn for the batch from
/// RandomShear, RandomTranslation, RandomRotation, RandomPosterization, Solarization,
/// AutoContrast, Equalization, with all_ops RandomBrightness, RandomColorDegeneration,
/// RandomContrast and RandomSharpness, and no change; strengths are drawn for each image, and the
/// weights of the chains and of the image for the batch. Each step computes all augmentations,
/// since the choice is known on the device only (Keras chooses on the host, once if the step is
/// compiled). Draws depend on the global row, so results are the same on every mesh. Identity
/// outside training. Masks are mixed as images are; boxes stay.
///
/// Shape: (batch, height, width, channels) -> the same, with three channels if all_ops;
/// data_format orders the axes.
/// Communication: the histograms if the batch is sharded; a sharded height or width is
/// all-gathered.
///
///     AugMix({.num_chains = 2, .factor = 0.5})
class AugMix : public AugmentationHandle {
 public:
  /// Throws ConfigError for a factor outside [0, 1], an alpha that is not above 0, no chains, a
  /// negative depth and an unknown interpolation.
  explicit AugMix(const AugMixOptions& options = {});
};

}  // namespace tessera
