#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/ops/affine_transform.hpp>
#include <tessera/layers/augmentation/augmentation_handle.hpp>
#include <tessera/layers/internal/labeled_layer.hpp>
#include <tessera/layers/internal/layer_config.hpp>

/// What the layers share that change images at random; `where` is a layer as errors name it.
namespace tessera::detail {

/// The numbers in [0, 1), some for each image of a batch, that say how a layer changes it. Number i
/// of a row is number row · n + i of the draw, so that it depends on the global row alone.
class ImageDraws {
 public:
  /// `rows` (batch, n), and the first of them (1, n), replicated, for what is the same for a whole
  /// batch.
  ImageDraws(DTensor rows, DTensor first) : rows_(std::move(rows)), first_(std::move(first)) {}
  /// Number i of each image, (batch, 1), brought to [lo, hi).
  DTensor each(int64_t i, double lo = 0, double hi = 1) const;
  /// Numbers [i, i + count) of each image, (batch, count).
  DTensor each_of(int64_t i, int64_t count) const;
  /// Number i of the first image, (1, 1), brought to [lo, hi).
  DTensor shared(int64_t i, double lo = 0, double hi = 1) const;
  /// 1 for each image whose number i is below `share`, else 0: (batch, 1).
  DTensor chosen(int64_t i, double share) const;
  /// 1 or, for each image whose number i is above 1/2, -1: (batch, 1).
  DTensor signs(int64_t i) const;
  /// These without the first i of each image, for a layer inside another.
  ImageDraws from(int64_t i) const;

 private:
  DTensor rows_, first_;
  int64_t begin_ = 0;
};

/// A value of x's dtype that broadcasts to it.
DTensor constant_like(const DTensor& x, double value);
/// A column (batch, 1) as (batch, 1, 1, 1), and in the images' dtype.
DTensor as_images(const DTensor& column);
DTensor for_images(const DTensor& column, const DTensor& images);
/// Whether a cell's number lies in [start, start + length) of columns (batch, 1), for the cells
/// along axis 1 or 2 of the images: bool, of extent 1 along the other axes but the batch.
DTensor cells_between(const DTensor& images, int64_t axis, const DTensor& start,
                      const DTensor& length);

/// A layer on images (batch, height, width, channels), or, with data_format "channels_first",
/// (batch, channels, height, width), that changes them in training and else lets them be
/// (Keras' BaseImagePreprocessingLayer). What is left to a derived class: config(), how many
/// numbers it draws for an image, and what it does by them.
class AugmentationLayer : public Layer, public LabeledLayer {
 public:
  /// How many numbers it draws for each image, by the shape of the batch, channels last.
  virtual int64_t draws(const Shape& images) const = 0;
  /// The images changed by those numbers; channels last, in the compute dtype.
  virtual DTensor transform(const DTensor& images, const ImageDraws& draws) const = 0;
  /// The images and what is changed with them; labels may be the second input of a layer that
  /// takes_labels().
  virtual std::vector<DTensor> transform_all(const Inputs& inputs, const ImageDraws& draws) const {
    return {transform(inputs[0], draws)};
  }
  virtual bool takes_labels() const { return false; }
  /// Masks of segments as the images' cells lie now, channels last; a layer that leaves cells where
  /// they are leaves masks as they are.
  virtual DTensor transform_masks(const DTensor& masks, const ImageDraws&) const { return masks; }
  /// The same of boxes, for the shape of the given images, channels last; tensors of the host.
  /// Throws ConfigError without a format.
  virtual BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape&,
                                        const ImageDraws&) const {
    return boxes;
  }

  LabeledImages call_labeled(const LabeledImages& batch, const CallContext& context) override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  Shapes output_shapes(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }

 protected:
  /// Throws ConfigError for an unknown data_format or bounding_box_format. `kind` is the class'
  /// name.
  template <class Options>
  AugmentationLayer(const std::string& kind, const Options& options)
      : AugmentationLayer(kind, common_options(options), options.data_format,
                          options.bounding_box_format) {
    if constexpr (requires { options.seed; }) seed_ = options.seed;
  }
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  /// The shape of the images it makes, channels last. Throws ShapeError for images it cannot take.
  virtual Shape made_shape(const Shape& images) const { return images; }
  /// What it makes of images out of training, channels last.
  virtual DTensor at_rest(const DTensor& images) const { return images; }
  /// Whether it asks for ImageDraws::shared().
  virtual bool draws_for_batch() const { return false; }
  /// Class and name, as errors have them.
  std::string where() const;
  /// The format of boxes. Throws ConfigError if the options have none.
  const std::string& box_format() const { return used_box_format(where(), box_format_); }

 private:
  AugmentationLayer(const std::string& kind, const LayerOptions& options,
                    const std::string& data_format, const std::string& box_format);
  ImageDraws drawn(const DTensor& images, const CallContext& context) const;

  std::string kind_;
  bool channels_first_;
  std::string box_format_;
  std::optional<int64_t> seed_;
};

/// The layer behind a handle to an AugmentationLayer.
std::shared_ptr<const AugmentationLayer> augmentation_of(const LayerHandle& handle);

/// The range that a factor within [least, most] stands for: one number f for [max(-f, least), f].
/// Throws ConfigError naming the option.
std::array<double, 2> factor_range(const std::string& where, const std::string& option,
                                   const Factor& factor, double least, double most);
/// The same of a factor that moves cells, within [-1, 1]: one number f stands for [-|f|, |f|].
std::array<double, 2> moved_range(const std::string& where, const std::string& option,
                                  const Factor& factor);
/// Two numbers, the smaller one first. Throws ConfigError for another list.
std::vector<double> checked_value_range(const std::string& where, std::vector<double> range);
/// The options of layers that move cells, by Keras' names. Throws ConfigError naming the option.
ops::AffineTransformOptions moving_options(const std::string& where, const std::string& fill_mode,
                                           const std::string& interpolation, double fill_value);
/// Rows (batch, 8) of columns (batch, 1); an undefined one is 0 throughout.
DTensor transform_rows(const std::vector<DTensor>& columns, const DTensor& like);

}  // namespace tessera::detail
