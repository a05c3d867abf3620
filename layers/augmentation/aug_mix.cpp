#include <tessera/layers/augmentation/aug_mix.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/augmentation/color.hpp>
#include <tessera/layers/augmentation/geometry.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>
#include <tessera/layers/internal/gamma_draws.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AugMixOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("num_chains", o.num_chains);
  visit("chain_depth", o.chain_depth);
  visit("factor", o.factor);
  visit("alpha", o.alpha);
  visit("all_ops", o.all_ops);
  visit("interpolation", o.interpolation);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class AugMixLayer final : public AugmentationOf<AugMixLayer, AugMixOptions> {
 public:
  static constexpr const char* keras_name = "AugMix";
  explicit AugMixLayer(const AugMixOptions& options);
  int64_t draws(const Shape& images) const override;
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override {
    if (arguments_.all_ops) check_rgb(where(), images);
    return images;
  }
  bool draws_for_batch() const override { return true; }

 private:
  void check_counts() const;
  void add_augmentations();
  int64_t draws_before_chains() const { return arguments_.num_chains * gamma_draws + beta_draws; }
  /// Returns the draws of a step: its choice, and as many as any augmentation needs.
  int64_t draws_of_step(const Shape& images) const;
  /// Returns images or masks x, mixed with their chains; apply(augmentation, x, draws) augments
  /// them.
  template <class Apply>
  DTensor mixed(const DTensor& x, const ImageDraws& draws, const Apply& apply) const;

  std::vector<std::shared_ptr<const AugmentationLayer>> augmentations_;
};

const RegisteredLayerOf<AugMixLayer> registered_aug_mix;

AugMixLayer::AugMixLayer(const AugMixOptions& options) : AugmentationOf(options) {
  check_counts();
  arguments_.factor = factor_range(where(), "factor", options.factor, 0, 1);
  add_augmentations();
}

void AugMixLayer::check_counts() const {
  const AugMixOptions& o = arguments_;
  if (o.num_chains < 1 || o.chain_depth < 0) {
    throw ConfigError(where(), "num_chains is at least 1 and chain_depth at least 0",
                      str(o.num_chains, " and ", o.chain_depth), "leave them out for 3 and 3");
  }
  if (!(o.alpha > 0)) {
    throw ConfigError(where(), "alpha is above 0", str(o.alpha), "leave it out for 1");
  }
}

void AugMixLayer::add_augmentations() {
  const AugMixOptions& o = arguments_;
  const Factor& factor = o.factor;
  const std::vector<double>& range = o.value_range;
  const double bits =
      std::max<double>(1, static_cast<double>(static_cast<int64_t>(8 * factor.values[1])));
  std::vector<LayerHandle> all = {
      RandomShear(factor, factor, {.interpolation = o.interpolation, .name = o.name}),
      RandomTranslation(factor, factor, {.interpolation = o.interpolation, .name = o.name}),
      RandomRotation(factor, {.interpolation = o.interpolation, .name = o.name}),
      RandomPosterization(bits, {.value_range = range, .name = o.name}),
      Solarization(factor, factor, {.value_range = range, .name = o.name}),
      AutoContrast({.value_range = range, .name = o.name}),
      Equalization({.value_range = range, .name = o.name})};
  if (o.all_ops) {
    all.push_back(RandomBrightness(factor, {.value_range = range, .name = o.name}));
    all.push_back(RandomColorDegeneration(factor, {.value_range = range, .name = o.name}));
    all.push_back(RandomContrast(factor, {.value_range = range, .name = o.name}));
    all.push_back(RandomSharpness(factor, {.value_range = range, .name = o.name}));
  }
  for (const LayerHandle& augmentation : all)
    augmentations_.push_back(as_augmentation(augmentation));
}

int64_t AugMixLayer::draws_of_step(const Shape& images) const {
  int64_t most = 0;
  for (const auto& augmentation : augmentations_) {
    most = std::max(most, augmentation->draws(images));
  }
  return 1 + most;
}

int64_t AugMixLayer::draws(const Shape& images) const {
  const int64_t steps = arguments_.num_chains * arguments_.chain_depth;
  return draws_before_chains() + steps * draws_of_step(images);
}

template <class Apply>
DTensor AugMixLayer::mixed(const DTensor& x, const ImageDraws& draws, const Apply& apply) const {
  const ImageDraws first = draws.of_first();
  const DTensor alpha =
      filled({1, 1}, arguments_.alpha, at::kFloat, Layout::replicated(x.mesh(), 2));
  std::vector<DTensor> logs;
  for (int64_t chain = 0; chain < arguments_.num_chains; ++chain) {
    logs.push_back(log_gamma_numbers(first.from(chain * gamma_draws), alpha));
  }
  // Gamma samples divided by their sum are a Dirichlet sample.
  const DTensor shares = ops::softmax(ops::concat(logs, 1), 1);
  const int64_t num_augmentations = std::ssize(augmentations_);
  const int64_t draws_per_step = draws_of_step(x.shape());
  int64_t used = draws_before_chains();
  DTensor sum;
  for (int64_t chain = 0; chain < arguments_.num_chains; ++chain) {
    DTensor y = x;
    for (int64_t step = 0; step < arguments_.chain_depth; ++step) {
      // The last choice changes nothing.
      const DTensor choice = draws.from(used).shared(0, 0, double(num_augmentations + 1));
      const DTensor index = as_images(ops::floor(choice));
      for (int64_t k = 0; k < num_augmentations; ++k) {
        const DTensor selected = ops::equal(index, constant_like(index, double(k)));
        y = ops::where(selected, apply(*augmentations_[size_t(k)], y, draws.from(used + 1)), y);
      }
      used += draws_per_step;
    }
    const DTensor part = y * for_images(ops::slice(shares, 1, chain, 1), x);
    sum = sum.defined() ? sum + part : part;
  }
  const DTensor w =
      for_images(beta_numbers(first.from(arguments_.num_chains * gamma_draws), alpha), x);
  return w * x + (-w + 1) * sum;
}

DTensor AugMixLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const DTensor made =
      mixed(images, draws,
            [](const AugmentationLayer& augmentation, const DTensor& x, const ImageDraws& of_step) {
              return augmentation.transform(x, of_step);
            });
  return ops::clip(made, arguments_.value_range[0], arguments_.value_range[1]);
}

DTensor AugMixLayer::transform_masks(const DTensor& masks, const ImageDraws& draws) const {
  const at::ScalarType dtype = dtype_policy().compute;
  const DTensor numbers = ops::cast(masks, dtype);
  return mixed(numbers, draws,
               [](const AugmentationLayer& augmentation, const DTensor& x,
                  const ImageDraws& of_step) { return augmentation.transform_masks(x, of_step); });
}

}  // namespace

AugMix::AugMix(const AugMixOptions& options)
    : AugmentationHandle(std::make_shared<AugMixLayer>(options)) {}

}  // namespace tessera
