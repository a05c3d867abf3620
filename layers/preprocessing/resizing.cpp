#include <tessera/layers/preprocessing/resizing.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/interpolations.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>
#include <tessera/layers/preprocessing/internal/image_size.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ResizingOptions& o, const Visit& visit) {
  visit("interpolation", o.interpolation);
  visit("crop_to_aspect_ratio", o.crop_to_aspect_ratio);
  visit("pad_to_aspect_ratio", o.pad_to_aspect_ratio);
  visit("fill_mode", o.fill_mode);
  visit("fill_value", o.fill_value);
  visit("antialias", o.antialias);
  visit("data_format", o.data_format);
}

namespace {

class ResizingLayer final : public SpatialLayer {
 public:
  ResizingLayer(ImageSize size, const ResizingOptions& options);
  Json config() const override {
    return layer_config(*this, {{"height", size_.height}, {"width", size_.width}}, options_);
  }

 protected:
  Shape image_shape(const Shape& x) const override {
    return {x[0], size_.height, size_.width, x[3]};
  }
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  void check_options() const;

  ImageSize size_;
  ResizingOptions options_;
};

const RegisteredLayer registered_resizing("Resizing", [](JsonObject& config) {
  const auto options = layer_options_from<ResizingOptions>(config);
  const int64_t height = take_extent(config, "height");
  return Resizing(height, take_extent(config, "width"), options);
});

/// Numbers of a floating dtype in a whole one, rounded, those that it cannot hold at its ends.
DTensor rounded(const DTensor& x, at::ScalarType dtype) {
  const auto within = [&](double lo, double hi) {
    return ops::cast(ops::clip(ops::round(x), lo, hi), dtype);
  };
  switch (dtype) {
    case at::kByte: return within(0, 255);
    case at::kChar: return within(-128, 127);
    case at::kShort: return within(-32768, 32767);
    default: return ops::cast(ops::round(x), dtype);
  }
}

ResizingLayer::ResizingLayer(ImageSize size, const ResizingOptions& options)
    : SpatialLayer("Resizing", 2, options.data_format, common_options(options)), size_(size),
      options_(options) {
  options_.data_format = data_format();
  check_positive(size.height, "height");
  check_positive(size.width, "width");
  check_options();
}

void ResizingLayer::check_options() const {
  std::vector<std::string> known = {"nearest"};
  for (const auto& [name, how] : interpolations()) known.push_back(name);
  const std::string& given = options_.interpolation;
  if (std::find(known.begin(), known.end(), given) == known.end()) {
    throw ConfigError("Resizing " + name(), "interpolation is one of " + quoted_list(known),
                      in_quotes(given), suggestion(given, known));
  }
  if (options_.fill_mode != "constant") {
    throw ConfigError("Resizing " + name(), "fill_mode is \"constant\"",
                      in_quotes(options_.fill_mode), "leave it out");
  }
  if (options_.crop_to_aspect_ratio && options_.pad_to_aspect_ratio) {
    throw ConfigError("Resizing " + name(),
                      "crop_to_aspect_ratio or pad_to_aspect_ratio is true, or neither", "both",
                      "leave one of them out");
  }
}

DTensor ResizingLayer::transform(const DTensor& x, const CallContext&) {
  // As TensorFlow does: half precision in float32, whole numbers too.
  const at::ScalarType dtype = x.dtype();
  const bool exact = options_.interpolation == "nearest" || dtype == at::kDouble;
  DTensor y = exact || dtype == at::kFloat ? x : ops::cast(x, at::kFloat);
  if (options_.crop_to_aspect_ratio) y = cropped_to_aspect(y, size_);
  if (options_.pad_to_aspect_ratio) y = padded_to_aspect(y, size_, options_.fill_value);
  y = resized(y, size_, options_.interpolation, options_.antialias);
  if (y.dtype() == dtype) return y;
  return at::isFloatingType(dtype) ? ops::cast(y, dtype) : rounded(y, dtype);
}

}  // namespace

Resizing::Resizing(int64_t height, int64_t width, const ResizingOptions& options)
    : LayerHandle(std::make_shared<ResizingLayer>(ImageSize{height, width}, options)) {}

}  // namespace tessera
