#include <tessera/layers/reshaping/up_sampling.hpp>

#include <algorithm>
#include <map>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/resample.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {

const std::map<std::string, ops::Interpolation>& interpolations() {
  static const std::map<std::string, ops::Interpolation> all = {
      {"bicubic", ops::Interpolation::bicubic},
      {"bilinear", ops::Interpolation::bilinear},
      {"lanczos3", ops::Interpolation::lanczos3},
      {"lanczos5", ops::Interpolation::lanczos5}};
  return all;
}

DTensor repeated(const DTensor& x, int64_t axis, int64_t times) {
  if (times == 1) return x;
  Shape shape = x.shape();
  shape.insert(shape.begin() + axis + 1, times);
  const DTensor copies = ops::broadcast_to(ops::expand_dims(x, axis + 1), shape);
  shape = x.shape();
  shape[size_t(axis)] *= times;
  return ops::reshape(copies, shape);
}

LayerHandle up_sampling_from(JsonObject& config, int64_t spatial) {
  const LayerOptions base = take_layer_options(config);
  const UpSamplingOptions options{
      .data_format = config.take_or("data_format", std::string()),
      .interpolation = config.take_or("interpolation", std::string("nearest")),
      .name = base.name,
      .dtype = base.dtype,
      .trainable = base.trainable};
  return make_layer<UpSamplingLayer>(spatial, take_axis_values(config, "size", 2), options);
}

}  // namespace

UpSamplingLayer::UpSamplingLayer(int64_t spatial, const AxisValues& size,
                                 const UpSamplingOptions& options)
    : SpatialLayer(str("UpSampling", spatial, "D"), spatial, options.data_format,
                 {options.name, options.dtype, options.trainable}),
      size_(each(size, "size")), interpolation_(options.interpolation) {
  std::vector<std::string> known = {"nearest"};
  for (const auto& [name, how] : interpolations()) {
    if (spatial == 2) known.push_back(name);
  }
  if (std::find(known.begin(), known.end(), interpolation_) != known.end()) return;
  throw ConfigError(class_name() + " " + name(), "interpolation is one of " + quoted_list(known),
                    in_quotes(interpolation_), suggestion(interpolation_, known));
}

Json UpSamplingLayer::config() const {
  Json json = SpatialLayer::config();
  json["size"] = axes_json(size_);
  if (spatial() == 2) json["interpolation"] = interpolation_;
  return json;
}

Shape UpSamplingLayer::image_shape(const Shape& x) const {
  Shape y = x;
  for (size_t i = 0; i < size_.size(); ++i) {
    if (y[i + 1] >= 0) y[i + 1] *= size_[i];
  }
  return y;
}

DTensor UpSamplingLayer::transform(const DTensor& x, const CallContext&) {
  DTensor y = x;
  for (size_t i = 0; i < size_.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    y = interpolation_ == "nearest"
            ? repeated(y, axis, size_[i])
            : ops::resample(y, axis, y.size(axis) * size_[i],
                            interpolations().at(interpolation_));
  }
  return y;
}

LayerHandle UpSampling1D::from_config(JsonObject& config) { return up_sampling_from(config, 1); }
LayerHandle UpSampling2D::from_config(JsonObject& config) { return up_sampling_from(config, 2); }

}  // namespace tessera
