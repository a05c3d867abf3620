#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/affine_transform.hpp>
#include <tessera/layers/augmentation/augmentation_handle.hpp>
#include <tessera/layers/internal/labeled_layer.hpp>
#include <tessera/layers/internal/layer_of.hpp>

/// Base classes and helpers of image augmentation layers; `where` names a layer in errors.
namespace tessera::detail {

/// Uniform random numbers in [0, 1) by which a layer changes images, n per image of a batch. Number
/// i of a row is number row · n + i of the draw, so it depends on the global row only.
class ImageDraws {
 public:
  /// `rows` is (batch, n); `first`, (1, n) and replicated, is its first row, for changes that a
  /// batch shares.
  ImageDraws(DTensor rows, DTensor first) : rows_(std::move(rows)), first_(std::move(first)) {}
  /// Returns number i of each image, (batch, 1), scaled to [lo, hi).
  DTensor each(int64_t i, double lo = 0, double hi = 1) const;
  /// Returns number i of each image, scaled to a range of two numbers.
  DTensor each(int64_t i, const Factor& range) const {
    return each(i, range.values[0], range.values[1]);
  }
  /// Returns numbers [i, i + count) of each image, (batch, count).
  DTensor each_of(int64_t i, int64_t count) const;
  /// Returns number i of the first image, (1, 1), scaled to [lo, hi).
  DTensor shared(int64_t i, double lo = 0, double hi = 1) const;
  /// Returns 1 for each image whose number i is below `probability`, otherwise 0: (batch, 1).
  DTensor bernoulli(int64_t i, double probability) const;
  /// Returns -1 for each image whose number i is above 1/2, otherwise 1: (batch, 1).
  DTensor signs(int64_t i) const;
  /// Returns the numbers without the first i of each image, for a nested layer.
  ImageDraws from(int64_t i) const;
  /// Returns the numbers of the first image, as those of a batch of one.
  ImageDraws of_first() const;

 private:
  DTensor rows_, first_;
  int64_t begin_ = 0;
};

/// Returns a scalar of x's dtype and mesh.
DTensor constant_like(const DTensor& x, double value);
/// Reshapes a column (batch, 1) to (batch, 1, 1, 1); for_images() also casts it to the images'
/// dtype.
DTensor as_images(const DTensor& column);
DTensor for_images(const DTensor& column, const DTensor& images);
/// Returns whether each pixel's index along axis 1 or 2 is in [start, start + length), for bounds
/// given as columns (batch, 1). The result is bool, with extent 1 along all axes but the batch and
/// `axis`.
DTensor pixels_between(const DTensor& images, int64_t axis, const DTensor& start,
                       const DTensor& length);

/// A layer on images (batch, height, width, channels), or, with data_format "channels_first",
/// (batch, channels, height, width). Applied in training only; identity otherwise (Keras'
/// BaseImagePreprocessingLayer). A derived class is made by AugmentationOf, and defines the number
/// of draws per image, and the transform that they parametrize.
class AugmentationLayer : public Layer, public LabeledLayer {
 public:
  /// Returns how many random numbers each image needs, for a batch of this shape, channels last.
  virtual int64_t draws(const Shape& images) const = 0;
  /// Returns the transformed images; channels last, in the compute dtype.
  virtual DTensor transform(const DTensor& images, const ImageDraws& draws) const = 0;
  /// Returns the transformed images, and labels if they are the second input, which takes_labels()
  /// permits.
  virtual std::vector<DTensor> transform_all(const Inputs& inputs, const ImageDraws& draws) const {
    return {transform(inputs[0], draws)};
  }
  virtual bool takes_labels() const { return false; }
  /// Transforms segmentation masks along with the images, channels last. Default: unchanged, for
  /// layers that do not move pixels.
  virtual DTensor transform_masks(const DTensor& masks, const ImageDraws&) const { return masks; }
  /// Transforms bounding boxes, which are host tensors, along with images of this shape, channels
  /// last. Throws ConfigError without a bounding_box_format.
  virtual BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape&,
                                        const ImageDraws&) const {
    return boxes;
  }

  LabeledImages call_labeled(const LabeledImages& batch, const CallContext& context) override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  Shapes output_shapes(const Shapes& inputs) const override;

 protected:
  using Layer::Layer;
  /// Throws ConfigError for an unknown format.
  void set_formats(const std::string& where, const std::string& data_format,
                   const std::string& box_format);
  void set_seed(std::optional<int64_t> seed) { seed_ = seed; }
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  /// Returns the shape of the transformed images, channels last. Throws ShapeError for images of an
  /// unsupported shape.
  virtual Shape transformed_shape(const Shape& images) const { return images; }
  /// Transforms images outside training, channels last.
  virtual DTensor outside_training(const DTensor& images) const { return images; }
  /// Whether transform() uses ImageDraws::shared().
  virtual bool draws_for_batch() const { return false; }
  /// Returns class and path, for errors.
  std::string where() const { return str(class_name(), ' ', path()); }
  /// Returns the bounding box format. Throws ConfigError if the options have none.
  const std::string& box_format() const { return required_box_format(where(), box_format_); }

 private:
  ImageDraws drawn(const DTensor& images, const CallContext& context) const;

  bool channels_first_ = false;
  std::string box_format_;
  std::optional<int64_t> seed_;
};

/// Returns the layer behind a handle. Throws ConfigError unless it is an AugmentationLayer.
std::shared_ptr<const AugmentationLayer> as_augmentation(const LayerHandle& handle);

/// Returns the range that a factor within [minimum, maximum] stands for; one number f means
/// [max(-|f|, minimum), |f|]. Throws ConfigError naming the option.
Factor factor_range(const std::string& where, const std::string& option, const Factor& factor,
                    double minimum, double maximum);
/// Returns the two numbers of `range`, sorted. Throws ConfigError for any other count.
std::vector<double> checked_value_range(const std::string& where, std::vector<double> range);
/// Returns the options of layers that move pixels, from Keras' names. Throws ConfigError naming the
/// option.
ops::AffineTransformOptions affine_options(const std::string& where, const std::string& fill_mode,
                                           const std::string& interpolation, double fill_value);
/// Joins columns (batch, 1) to rows (batch, 8); undefined columns become 0.
DTensor transform_rows(const std::vector<DTensor>& columns, const DTensor& like);

/// Arguments of an augmentation whose strength is a configuration's first key.
template <class Options>
struct FactorArguments : Options {
  Factor factor;
};
template <class Options, class Visit>
void fields(FactorArguments<Options>& a, const Visit& visit) {
  RequiredOption factor{a.factor};
  visit("factor", factor);
  fields(static_cast<Options&>(a), visit);
}

/// The frame of an augmentation layer, see LayerOf. `Base` is an AugmentationLayer.
template <class Self, class LayerArguments, class Base = AugmentationLayer>
class AugmentationOf : public LayerOf<Self, LayerArguments, Base> {
 public:
  /// Throws ConfigError for an invalid format, value_range, fill_mode or interpolation.
  explicit AugmentationOf(const LayerArguments& arguments)
      : LayerOf<Self, LayerArguments, Base>(arguments) {
    this->set_formats(this->where(), arguments.data_format, arguments.bounding_box_format);
    if constexpr (requires { arguments.seed; }) this->set_seed(arguments.seed);
    if constexpr (requires { arguments.value_range; }) {
      this->arguments_.value_range = checked_value_range(this->where(), arguments.value_range);
    }
    if constexpr (requires {
                    arguments.fill_mode;
                    this->set_moving(ops::AffineTransformOptions());
                  }) {
      this->set_moving(affine_options(this->where(), arguments.fill_mode, arguments.interpolation,
                                      arguments.fill_value));
    }
  }
};

}  // namespace tessera::detail
