#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/augmentation/labeled_images.hpp>

namespace tessera {

namespace detail {

/// How much a layer changes images: a range, or one number for a range around 0 (Keras' float or
/// tuple).
struct Factor {
  Factor(double most = 0) : values{most} {}  // NOLINT: reads as data
  Factor(double lo, double hi) : values{lo, hi} {}
  Factor(std::vector<double> given) : values(std::move(given)) {}  // NOLINT: reads as data
  Json json() const { return values.size() == 1 ? Json(values[0]) : Json(values); }
  std::vector<double> values;
};
/// A number, or a list. Throws ConfigError naming the place.
void json_get(const Json& json, const JsonPath& path, Factor& out);

/// A handle to a layer that changes images at random in training. In a model it does so on the
/// mesh; called on tensors of the host it does so there, as in training, for the rows of a data
/// pipeline:
///
///     const RandomFlip flip;
///     at::Tensor turned = flip(images[0], 7);  // or of a whole batch
///
/// The numbers follow from the seed, the layer's name and the row in the batch: a model of global
/// seed a gives the same images in step b for the Seed {a, b}, and a number is the seed of step 0.
/// In DataPipeline::map() after batch() rows are those of the global batch, of which a process may
/// hold some. Layers without a name that are called one after the other with one seed draw alike if
/// they are of one class; a Pipeline names them. Threads may call at once.
class AugmentationHandle : public LayerHandle {
 public:
  using LayerHandle::LayerHandle;
  using LayerHandle::operator();
  /// One image, of three axes, or a batch of them, of four. Throws as the layer does.
  at::Tensor operator()(const at::Tensor& images, Seed seed) const;
  at::Tensor operator()(const at::Tensor& images, int64_t seed) const {
    return (*this)(images, Seed{seed, 0});
  }
  /// Images, and the labels that a layer changes with them.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs, Seed seed) const;
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs, int64_t seed) const {
    return (*this)(inputs, Seed{seed, 0});
  }
  /// A batch whose rows are each changed as an image alone with its seed. Throws ShapeError unless
  /// there is a seed for each.
  at::Tensor operator()(const at::Tensor& images, const std::vector<Seed>& seeds) const;
  /// Images with their labels, boxes and masks of segments, which follow them:
  ///
  ///     const Pipeline augment({RandomFlip("horizontal", {.bounding_box_format = "xyxy"}),
  ///                             RandomContrast(0.2)});
  ///     const LabeledImages made = augment(
  ///         LabeledImages{.images = images, .bounding_boxes = {boxes, classes}}, 7);
  ///
  /// Masks are read from the nearest cell. Boxes are made float32 (float64 stays), the smallest
  /// that hold theirs, clipped to the image; of those that nothing is left of, the label is -1.
  /// Throws as the layer does, ConfigError if boxes move in a layer without a bounding_box_format,
  /// and ShapeError for what does not belong to the images.
  template <std::same_as<LabeledImages> Data>
  LabeledImages operator()(const Data& data, Seed seed) const {
    return labeled(data, seed);
  }
  template <std::same_as<LabeledImages> Data>
  LabeledImages operator()(const Data& data, int64_t seed) const {
    return labeled(data, Seed{seed, 0});
  }
  /// A batch of them, each with its seed.
  template <std::same_as<LabeledImages> Data>
  LabeledImages operator()(const Data& data, const std::vector<Seed>& seeds) const {
    return labeled(data, seeds);
  }

 private:
  LabeledImages labeled(const LabeledImages& data, Seed seed) const;
  LabeledImages labeled(const LabeledImages& data, const std::vector<Seed>& seeds) const;
  void check_seeds(const at::Tensor& images, size_t seeds) const;
};

}  // namespace detail

}  // namespace tessera
