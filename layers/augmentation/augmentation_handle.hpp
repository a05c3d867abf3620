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

/// Strength of an augmentation: a range, or one number f for [-f, f] clipped to the range that the
/// layer allows (Keras' float or tuple).
struct Factor {
  Factor(double max = 0) : values{max} {}  // NOLINT: reads as data
  Factor(double lo, double hi) : values{lo, hi} {}
  Factor(std::vector<double> range) : values(std::move(range)) {}  // NOLINT: reads as data
  Json json() const { return values.size() == 1 ? Json(values[0]) : Json(values); }
  std::vector<double> values;
};

namespace detail {
/// Reads a number or a list. Throws ConfigError naming the JSON path.
void json_get(const Json& json, const JsonPath& path, Factor& out);

}  // namespace detail

/// A handle to a layer that augments images. In a model it runs on the mesh, and changes images in
/// training only. Called on host tensors, as in a data pipeline, it runs on the host as in
/// training:
///
///     const RandomFlip flip;
///     at::Tensor turned = flip(images[0], 7);  // or of a whole batch
///
/// Draws are determined by the seed, the layer's name and the row in the batch: Seed {a, b} gives
/// the images of step b in a model with global seed a, and the integer a stands for {a, 0}. In
/// DataPipeline::map() after batch(), rows are numbered in the global batch, even if a process
/// holds only some of them. Unnamed layers of one class draw the same numbers from the same seed; a
/// Pipeline names its layers. Thread-safe.
class AugmentationHandle : public LayerHandle {
 public:
  using LayerHandle::LayerHandle;
  using LayerHandle::operator();
  /// Augments one image (three axes) or a batch (four axes). Throws as the layer does.
  at::Tensor operator()(const at::Tensor& images, Seed seed) const;
  at::Tensor operator()(const at::Tensor& images, int64_t seed) const {
    return (*this)(images, Seed{seed, 0});
  }
  /// Augments {images, labels}, for layers that change both.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs, Seed seed) const;
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs, int64_t seed) const {
    return (*this)(inputs, Seed{seed, 0});
  }
  /// Augments each row of a batch as a single image with its own seed. Throws ShapeError unless
  /// there is one seed for each row.
  at::Tensor operator()(const at::Tensor& images, const std::vector<Seed>& seeds) const;
  /// Augments images together with their labels, bounding boxes and segmentation masks:
  ///
  ///     const Pipeline augment({RandomFlip("horizontal", {.bounding_box_format = "xyxy"}),
  ///                             RandomContrast(0.2)});
  ///     const LabeledImages made = augment(
  ///         LabeledImages{.images = images, .bounding_boxes = {boxes, classes}}, 7);
  ///
  /// Masks are sampled from the nearest pixel. Boxes become float32 (float64 stays): the smallest
  /// axis-aligned boxes around the transformed ones, clipped to the image; a box of which nothing
  /// is left gets label -1. Throws as the layer does, ConfigError if boxes move in a layer without
  /// a bounding_box_format, and ShapeError for labels, boxes or masks that do not match the images.
  template <std::same_as<LabeledImages> Data>
  LabeledImages operator()(const Data& data, Seed seed) const {
    return labeled(data, seed);
  }
  template <std::same_as<LabeledImages> Data>
  LabeledImages operator()(const Data& data, int64_t seed) const {
    return labeled(data, Seed{seed, 0});
  }
  /// Augments each row of a batch with its own seed.
  template <std::same_as<LabeledImages> Data>
  LabeledImages operator()(const Data& data, const std::vector<Seed>& seeds) const {
    return labeled(data, seeds);
  }

 private:
  LabeledImages labeled(const LabeledImages& data, Seed seed) const;
  LabeledImages labeled(const LabeledImages& data, const std::vector<Seed>& seeds) const;
  void check_seeds(const at::Tensor& images, size_t seeds) const;
};

}  // namespace tessera
