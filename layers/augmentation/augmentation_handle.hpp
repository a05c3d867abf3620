#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/layer.hpp>

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
/// Layers without a name that are called one after the other with one seed draw alike if they are
/// of one class; a Pipeline names them. Threads may call at once.
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
};

}  // namespace detail

}  // namespace tessera
