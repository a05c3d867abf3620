#include <tessera/layers/preprocessing/center_crop.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>
#include <tessera/layers/preprocessing/internal/image_size.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(CenterCropOptions& o, const Visit& visit) {
  visit("data_format", o.data_format);
}

namespace {

class CenterCropLayer final : public SpatialLayer {
 public:
  CenterCropLayer(ImageSize size, const CenterCropOptions& options);
  Json config() const override {
    return layer_config(*this, {{"height", size_.height}, {"width", size_.width}}, options_);
  }

 protected:
  Shape image_shape(const Shape& x) const override {
    return {x[0], size_.height, size_.width, x[3]};
  }
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  ImageSize size_;
  CenterCropOptions options_;
};

const RegisteredLayer registered_center_crop("CenterCrop", [](JsonObject& config) {
  const auto options = layer_options_from<CenterCropOptions>(config);
  const int64_t height = take_extent(config, "height");
  return CenterCrop(height, take_extent(config, "width"), options);
});

CenterCropLayer::CenterCropLayer(ImageSize size, const CenterCropOptions& options)
    : SpatialLayer("CenterCrop", 2, options.data_format, common_options(options)), size_(size),
      options_(options) {
  options_.data_format = data_format();
  check_positive(size.height, "height");
  check_positive(size.width, "width");
}

DTensor CenterCropLayer::transform(const DTensor& x, const CallContext&) {
  const at::ScalarType dtype = dtype_policy().compute;
  const DTensor images = x.dtype() == dtype ? x : ops::cast(x, dtype);
  const int64_t rows = x.size(1) - size_.height, columns = x.size(2) - size_.width;
  if (rows < 0 || columns < 0) {
    return resized(cropped_to_aspect(images, size_), size_, "bilinear");
  }
  const DTensor middle = ops::slice(images, 1, rows / 2, size_.height);
  return ops::slice(middle, 2, columns / 2, size_.width);
}

}  // namespace

CenterCrop::CenterCrop(int64_t height, int64_t width, const CenterCropOptions& options)
    : LayerHandle(std::make_shared<CenterCropLayer>(ImageSize{height, width}, options)) {}

}  // namespace tessera
