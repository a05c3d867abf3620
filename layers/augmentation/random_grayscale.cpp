#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomGrayscaleOptions& o, const Visit& visit) {
  visit("data_format", o.data_format);
  visit("seed", o.seed);
}

namespace {

class RandomGrayscaleLayer final : public AugmentationLayer {
 public:
  RandomGrayscaleLayer(double factor, const RandomGrayscaleOptions& options);
  std::string class_name() const override { return "RandomGrayscale"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;

 private:
  double factor_;
  RandomGrayscaleOptions options_;
};

const RegisteredLayer registered_random_grayscale("RandomGrayscale", [](JsonObject& config) {
  const auto options = layer_options_from<RandomGrayscaleOptions>(config);
  return RandomGrayscale(config.take_optional<double>("factor").value_or(0.5), options);
});

RandomGrayscaleLayer::RandomGrayscaleLayer(double factor, const RandomGrayscaleOptions& options)
    : AugmentationLayer("RandomGrayscale", options), factor_(factor), options_(options) {
  if (factor >= 0 && factor <= 1) return;
  throw ConfigError(where(), "factor lies in [0, 1]", str(factor),
                    "give the fraction of images to convert");
}

Shape RandomGrayscaleLayer::transformed_shape(const Shape& images) const {
  if (images[3] != 1) check_rgb(where(), images);
  return images;
}

DTensor RandomGrayscaleLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const DTensor u = draws.each(0);
  const DTensor selected = as_images(ops::less(u, constant_like(u, factor_)));
  return ops::where(selected, gray_of(images), images);
}

}  // namespace

RandomGrayscale::RandomGrayscale(double factor, const RandomGrayscaleOptions& options)
    : AugmentationHandle(std::make_shared<RandomGrayscaleLayer>(factor, options)) {}

}  // namespace tessera
