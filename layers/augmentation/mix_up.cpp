#include <tessera/layers/augmentation/mix_up.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/gamma_draws.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Base of MixUp and CutMix, which mix images and labels with those of other rows of the batch.
class MixingLayer : public AugmentationLayer {
 public:
  using AugmentationLayer::AugmentationLayer;
  bool takes_labels() const override { return true; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override {
    return transform_all({images}, draws)[0];
  }
};

/// Returns a random permutation of the batch's rows: the position of each row's draw when sorted.
DTensor random_order(const ImageDraws& draws, int64_t i) {
  const DTensor column = draws.each(i);
  const int64_t n = column.shape()[0];
  const Layout layout = Layout::replicated(column.mesh(), 2);
  const DTensor all = ops::relayout(column, layout);
  const DTensor transposed = ops::reshape(all, {1, n});
  // Equal draws keep the order of their rows.
  const DTensor lower = pack(at::ones({n, n}, at::kBool).tril(-1), layout);
  const DTensor before = ops::logical_or(ops::less(transposed, all),
                                         ops::logical_and(ops::equal(transposed, all), lower));
  return ops::sum(ops::cast(before, at::kLong), {1});
}

/// Returns w · labels + (1 - w) · labels in `order`.
DTensor mixed_labels(const std::string& where, const DTensor& labels, const DTensor& order,
                     const DTensor& weight, at::ScalarType dtype) {
  if (labels.rank() != 2) {
    throw ShapeError(where, "labels are (batch, classes)", to_string(labels.shape()),
                     "give a share of each class, as one_hot() does");
  }
  const DTensor shares = ops::cast(labels, dtype);
  const DTensor w = ops::cast(weight, dtype);
  return w * shares + (-w + 1) * ops::gather(shares, order, 0);
}

struct MixUpArguments : MixUpOptions {
  double alpha = 0.2;
};

template <class Visit>
void fields(MixUpArguments& a, const Visit& visit) {
  visit("alpha", a.alpha);
  visit("seed", a.seed);
  visit("data_format", a.data_format);
}

class MixUpLayer final : public AugmentationOf<MixUpLayer, MixUpArguments, MixingLayer> {
 public:
  static constexpr const char* keras_name = "MixUp";
  explicit MixUpLayer(const MixUpArguments& arguments);
  int64_t draws(const Shape&) const override { return 1 + beta_draws; }
  std::vector<DTensor> transform_all(const Inputs& inputs, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override;
  BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                const ImageDraws& draws) const override;

 private:
  DTensor mix_weights(const ImageDraws& draws) const;
};

const RegisteredLayerOf<MixUpLayer> registered_mix_up;

MixUpLayer::MixUpLayer(const MixUpArguments& arguments) : AugmentationOf(arguments) {
  if (arguments.alpha > 0) return;
  throw ConfigError(where(), "alpha is above 0", str(arguments.alpha),
                    "give a small number such as 0.2 to mix little");
}

/// Returns w of each image, (batch, 1).
DTensor MixUpLayer::mix_weights(const ImageDraws& draws) const {
  const Layout layout = Layout::replicated(draws.each(0).mesh(), 2);
  return beta_numbers(draws.from(1), filled({1, 1}, arguments_.alpha, at::kFloat, layout));
}

std::vector<DTensor> MixUpLayer::transform_all(const Inputs& inputs,
                                               const ImageDraws& draws) const {
  const DTensor& x = inputs[0];
  const DTensor order = random_order(draws, 0), weight = mix_weights(draws);
  const DTensor w = for_images(weight, x);
  std::vector<DTensor> all = {w * x + (-w + 1) * ops::gather(x, order, 0)};
  if (inputs.size() > 1) {
    all.push_back(mixed_labels(where(), inputs[1], order, weight, dtype_policy().compute));
  }
  return all;
}

DTensor MixUpLayer::transform_masks(const DTensor& masks, const ImageDraws& draws) const {
  const at::ScalarType dtype = dtype_policy().compute;
  const DTensor x = ops::cast(masks, dtype);
  const DTensor w = for_images(mix_weights(draws), x);
  return w * x + (-w + 1) * ops::gather(x, random_order(draws, 0), 0);
}

/// Returns the boxes of both images.
BoundingBoxes MixUpLayer::transform_boxes(const BoundingBoxes& boxes, const Shape&,
                                          const ImageDraws& draws) const {
  const at::Tensor order = random_order(draws, 0).full();
  const auto with_others = [&](const at::Tensor& x) {
    return at::cat({x, x.index_select(0, order)}, 1);
  };
  return {with_others(boxes.boxes), with_others(boxes.labels)};
}

struct CutMixArguments : MixUpOptions {
  Factor factor = 1.0;
};

template <class Visit>
void fields(CutMixArguments& a, const Visit& visit) {
  visit("factor", a.factor);
  visit("seed", a.seed);
  visit("data_format", a.data_format);
}

class CutMixLayer final : public AugmentationOf<CutMixLayer, CutMixArguments, MixingLayer> {
 public:
  static constexpr const char* keras_name = "CutMix";
  explicit CutMixLayer(const CutMixArguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  }
  int64_t draws(const Shape&) const override { return 1 + beta_draws + 3; }
  std::vector<DTensor> transform_all(const Inputs& inputs, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override {
    return pasted(masks, rectangles(masks, draws));
  }
  BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                const ImageDraws& draws) const override;

 protected:
  bool draws_for_batch() const override { return true; }

 private:
  /// Mask of the pasted pixels, the rows they come from, and the fraction that stays of each image.
  struct Rectangles {
    DTensor mask, order, weight;
  };
  Rectangles rectangles(const DTensor& images, const ImageDraws& draws) const;
  static DTensor pasted(const DTensor& x, const Rectangles& from) {
    return ops::where(from.mask, ops::gather(x, from.order, 0), x);
  }
};

const RegisteredLayerOf<CutMixLayer> registered_cut_mix;

CutMixLayer::Rectangles CutMixLayer::rectangles(const DTensor& images,
                                                const ImageDraws& draws) const {
  const auto height = double(images.shape()[1]), width = double(images.shape()[2]);
  const std::vector<double>& factor = arguments_.factor.values;
  const DTensor alpha = draws.shared(0, factor[0], factor[1]) + 1e-6;
  const DTensor side = ops::sqrt(-beta_numbers(draws.from(1), alpha) + 1);
  const ImageDraws remaining = draws.from(1 + beta_draws);
  const DTensor of_x = side * width, of_y = side * height;
  const DTensor in_x = pixels_between(images, 2, remaining.each(0) * (-of_x + width), of_x);
  const DTensor in_y = pixels_between(images, 1, remaining.each(1) * (-of_y + height), of_y);
  return {ops::logical_and(in_x, in_y), random_order(remaining, 2),
          -(of_x * of_y / (width * height)) + 1};
}

std::vector<DTensor> CutMixLayer::transform_all(const Inputs& inputs,
                                                const ImageDraws& draws) const {
  const Rectangles from = rectangles(inputs[0], draws);
  std::vector<DTensor> all = {pasted(inputs[0], from)};
  if (inputs.size() > 1) {
    all.push_back(
        mixed_labels(where(), inputs[1], from.order, from.weight, dtype_policy().compute));
  }
  return all;
}

BoundingBoxes CutMixLayer::transform_boxes(const BoundingBoxes&, const Shape&,
                                           const ImageDraws&) const {
  throw ConfigError(where(), "bounding boxes are not supported", "images with boxes",
                    "leave the boxes out, or use MixUp");
}

}  // namespace

MixUp::MixUp(double alpha, const MixUpOptions& options)
    : AugmentationHandle(std::make_shared<MixUpLayer>(MixUpArguments{options, alpha})) {}
CutMix::CutMix(const Factor& factor, const MixUpOptions& options)
    : AugmentationHandle(std::make_shared<CutMixLayer>(CutMixArguments{options, factor})) {}

}  // namespace tessera
