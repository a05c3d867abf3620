#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomGrayscaleArguments : RandomGrayscaleOptions {
  double factor = 0.5;
};

template <class Visit>
void fields(RandomGrayscaleArguments& a, const Visit& visit) {
  visit("factor", a.factor);
  visit("data_format", a.data_format);
  visit("seed", a.seed);
}

class RandomGrayscaleLayer final
    : public AugmentationOf<RandomGrayscaleLayer, RandomGrayscaleArguments> {
 public:
  static constexpr const char* keras_name = "RandomGrayscale";
  explicit RandomGrayscaleLayer(const RandomGrayscaleArguments& arguments);
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;
};

const RegisteredLayerOf<RandomGrayscaleLayer> registered_random_grayscale;

RandomGrayscaleLayer::RandomGrayscaleLayer(const RandomGrayscaleArguments& arguments)
    : AugmentationOf(arguments) {
  const double factor = arguments.factor;
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
  const DTensor selected = as_images(ops::less(u, constant_like(u, arguments_.factor)));
  return ops::where(selected, gray_of(images), images);
}

}  // namespace

RandomGrayscale::RandomGrayscale(double factor, const RandomGrayscaleOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomGrayscaleLayer>(RandomGrayscaleArguments{options, factor})) {}

}  // namespace tessera
