#include <tessera/layers/augmentation/color.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomGaussianBlurArguments : RandomGaussianBlurOptions {
  Factor factor = 1.0;
};

template <class Visit>
void fields(RandomGaussianBlurArguments& a, const Visit& visit) {
  visit("factor", a.factor);
  visit("kernel_size", a.kernel_size);
  visit("sigma", a.sigma);
  visit("value_range", a.value_range);
  visit("data_format", a.data_format);
  visit("seed", a.seed);
}

class RandomGaussianBlurLayer final
    : public AugmentationOf<RandomGaussianBlurLayer, RandomGaussianBlurArguments> {
 public:
  static constexpr const char* keras_name = "RandomGaussianBlur";
  explicit RandomGaussianBlurLayer(const RandomGaussianBlurArguments& arguments);
  int64_t draws(const Shape&) const override { return 4; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  bool draws_for_batch() const override { return true; }

 private:
  DTensor kernel(const ImageDraws& draws, int64_t i) const;
};

const RegisteredLayerOf<RandomGaussianBlurLayer> registered_random_gaussian_blur;

RandomGaussianBlurLayer::RandomGaussianBlurLayer(const RandomGaussianBlurArguments& arguments)
    : AugmentationOf(arguments) {
  arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  arguments_.sigma = factor_range(where(), "sigma", arguments.sigma, 0, 1);
  std::vector<int64_t>& sizes = arguments_.kernel_size.values;
  if (sizes.size() == 1) sizes.push_back(sizes[0]);
  const bool odd =
      sizes.size() == 2 && sizes[0] > 0 && sizes[1] > 0 && sizes[0] % 2 == 1 && sizes[1] % 2 == 1;
  if (odd) return;
  throw ConfigError(where(), "kernel_size is one odd number or two", Json(sizes).dump(),
                    "give a width and a height such as 3 or {3, 5}");
}

/// Returns the normalized kernel (1, size) of the width (i = 0) or of the height (i = 1).
DTensor RandomGaussianBlurLayer::kernel(const ImageDraws& draws, int64_t i) const {
  const std::vector<double>& range = arguments_.sigma.values;
  const DTensor sigma = draws.shared(2 + i, range[0], range[1]) + 1e-6;
  const int64_t size = arguments_.kernel_size.values[static_cast<size_t>(i)];
  const at::Tensor offsets = at::arange(size, at::kFloat).sub(size / 2).view({1, size});
  const DTensor distance = pack(offsets, Layout::replicated(sigma.mesh(), 2)) / sigma;
  const DTensor weights = ops::exp(ops::square(distance) * -0.5);
  return weights / ops::sum(weights, {1}, true);
}

/// Returns the convolution of an axis with a kernel (1, size); images are 0 beyond their edges.
DTensor blurred_along(const DTensor& x, int64_t axis, const DTensor& kernel) {
  const int64_t size = kernel.shape()[1], extent = x.shape()[static_cast<size_t>(axis)];
  const DTensor wider = ops::pad(x, axis, size / 2, size / 2);
  DTensor sum;
  for (int64_t i = 0; i < size; ++i) {
    const DTensor weight = for_images(ops::slice(kernel, 1, i, 1), x);
    const DTensor part = ops::slice(wider, axis, i, extent) * weight;
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

DTensor RandomGaussianBlurLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const DTensor x = widened(images);
  const DTensor blurred = blurred_along(blurred_along(x, 1, kernel(draws, 1)), 2, kernel(draws, 0));
  const DTensor selected = as_images(ops::less(draws.each(1), draws.each(0, arguments_.factor)));
  const std::vector<double>& range = arguments_.value_range;
  const DTensor made = ops::clip(ops::where(selected, blurred, x), range[0], range[1]);
  return ops::cast(made, images.dtype());
}

}  // namespace

RandomGaussianBlur::RandomGaussianBlur(const Factor& factor,
                                       const RandomGaussianBlurOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomGaussianBlurLayer>(RandomGaussianBlurArguments{options, factor})) {
}

}  // namespace tessera
