#include <tessera/layers/augmentation/random_crop.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/resample.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomCropOptions& o, const Visit& visit) {
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandomCropLayer final : public AugmentationLayer {
 public:
  RandomCropLayer(int64_t height, int64_t width, const RandomCropOptions& options);
  std::string class_name() const override { return "RandomCrop"; }
  Json config() const override {
    return layer_config(*this, {{"height", height_}, {"width", width_}}, options_);
  }
  int64_t draws(const Shape&) const override { return 2; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape made_shape(const Shape& images) const override {
    return {images[0], height_, width_, images[3]};
  }
  DTensor at_rest(const DTensor& images) const override;
  bool draws_for_batch() const override { return true; }

 private:
  int64_t height_, width_;
  RandomCropOptions options_;
};

const RegisteredLayer registered_random_crop("RandomCrop", [](JsonObject& config) {
  const auto options = layer_options_from<RandomCropOptions>(config);
  const int64_t height = take_extent(config, "height");
  return RandomCrop(height, take_extent(config, "width"), options);
});

RandomCropLayer::RandomCropLayer(int64_t height, int64_t width, const RandomCropOptions& options)
    : AugmentationLayer("RandomCrop", options), height_(height), width_(width), options_(options) {
  if (height > 0 && width > 0) return;
  throw ConfigError(where(), "height and width are at least 1", str(height, " and ", width),
                    "give the size of the part");
}

DTensor RandomCropLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const int64_t h = images.shape()[1], w = images.shape()[2];
  if (h <= height_ || w <= width_) return at_rest(images);
  const DTensor none = draws.each(0) * 0, stays = none + 1;
  const DTensor top = none + ops::floor(draws.shared(0, 0, double(h - height_ + 1)));
  const DTensor left = none + ops::floor(draws.shared(1, 0, double(w - width_ + 1)));
  const DTensor rows = transform_rows({stays, {}, left, {}, stays, top, {}, {}}, none);
  return ops::affine_transform(images, rows, {.nearest = true, .size = {{height_, width_}}});
}

DTensor RandomCropLayer::at_rest(const DTensor& images) const {
  const int64_t h = images.shape()[1], w = images.shape()[2];
  const int64_t part_h = std::clamp<int64_t>(w * height_ / width_, 1, h);
  const int64_t part_w = std::clamp<int64_t>(h * width_ / height_, 1, w);
  const int64_t top = (h - part_h) / 2, left = (w - part_w) / 2;
  // As much as there is from the part's corner on, which Keras takes for the part.
  DTensor y = ops::slice(images, 1, top, std::min(height_, h - top));
  y = ops::slice(y, 2, left, std::min(width_, w - left));
  y = ops::resample(y, 1, height_, ops::Interpolation::bilinear);
  return ops::resample(y, 2, width_, ops::Interpolation::bilinear);
}

}  // namespace

RandomCrop::RandomCrop(int64_t height, int64_t width, const RandomCropOptions& options)
    : AugmentationHandle(std::make_shared<RandomCropLayer>(height, width, options)) {}

}  // namespace tessera
