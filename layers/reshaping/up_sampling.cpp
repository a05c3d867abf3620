#include <tessera/layers/reshaping/up_sampling.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/interpolations.hpp>
#include <tessera/framework/ops/resample.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(UpSamplingOptions& o, const Visit& visit) {
  visit("data_format", o.data_format);
  visit("interpolation", o.interpolation);
}

namespace {

class UpSamplingLayer final : public SpatialLayer {
 public:
  UpSamplingLayer(int64_t spatial, const AxisValues& size, const UpSamplingOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  std::vector<int64_t> size_;
  UpSamplingOptions options_;
};

template <int64_t spatial>
LayerHandle up_sampling_from(JsonObject& config) {
  const auto options = layer_options_from<UpSamplingOptions>(config);
  return make_layer<UpSamplingLayer>(spatial, config.take_or<AxisValues>("size", 2), options);
}

const RegisteredLayer registered_up_sampling1d("UpSampling1D", up_sampling_from<1>);
const RegisteredLayer registered_up_sampling2d("UpSampling2D", up_sampling_from<2>);
const RegisteredLayer registered_up_sampling3d("UpSampling3D", up_sampling_from<3>);

DTensor repeated(const DTensor& x, int64_t axis, int64_t times) {
  if (times == 1) return x;
  Shape shape = x.shape();
  shape.insert(shape.begin() + axis + 1, times);
  const DTensor copies = ops::broadcast_to(ops::expand_dims(x, axis + 1), shape);
  shape = x.shape();
  shape[size_t(axis)] *= times;
  return ops::reshape(copies, shape);
}

UpSamplingLayer::UpSamplingLayer(int64_t spatial, const AxisValues& size,
                                 const UpSamplingOptions& options)
    : SpatialLayer(common_options(options), str("UpSampling", spatial, "D"), spatial,
                   options.data_format),
      size_(each(size, "size")),
      options_(options) {
  options_.data_format = data_format();
  std::vector<std::string> known = {"nearest"};
  for (const auto& [name, how] : interpolations()) {
    if (spatial == 2) known.push_back(name);
  }
  const std::string& interpolation = options.interpolation;
  if (std::find(known.begin(), known.end(), interpolation) != known.end()) return;
  throw ConfigError(class_name() + " " + name(), "interpolation is one of " + quoted_list(known),
                    in_quotes(interpolation), suggestion(interpolation, known));
}

Json UpSamplingLayer::config() const {
  Json json =
      layer_config(*this, {{"data_format", data_format()}, {"size", axes_json(size_)}}, options_);
  // Only Keras' UpSampling2D has an interpolation.
  if (spatial() != 2) json.erase("interpolation");
  return json;
}

Shape UpSamplingLayer::image_shape(const Shape& x) const {
  Shape y = x;
  for (size_t i = 0; i < size_.size(); ++i) {
    if (y[i + 1] >= 0) y[i + 1] = times(y[i + 1], size_[i]);
  }
  return y;
}

DTensor UpSamplingLayer::transform(const DTensor& x, const CallContext&) {
  DTensor y = x;
  for (size_t i = 0; i < size_.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    y = options_.interpolation == "nearest"
            ? repeated(y, axis, size_[i])
            : ops::resample(y, axis, y.size(axis) * size_[i],
                            interpolations().at(options_.interpolation));
  }
  return y;
}

}  // namespace

UpSampling1D::UpSampling1D(const AxisValues& size, const UpSamplingOptions& options)
    : LayerHandle(std::make_shared<UpSamplingLayer>(1, size, options)) {}
UpSampling2D::UpSampling2D(const AxisValues& size, const UpSamplingOptions& options)
    : LayerHandle(std::make_shared<UpSamplingLayer>(2, size, options)) {}
UpSampling3D::UpSampling3D(const AxisValues& size, const UpSamplingOptions& options)
    : LayerHandle(std::make_shared<UpSamplingLayer>(3, size, options)) {}

}  // namespace tessera
