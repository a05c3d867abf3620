#include <tessera/layers/pooling/pooling.hpp>

#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/pool.hpp>

namespace tessera {
namespace {


LayerHandle pooling_from(JsonObject& config, PoolingLayer::Kind kind, int64_t spatial) {
  const LayerOptions base = take_layer_options(config);
  PoolingOptions options{.padding = config.take_or("padding", std::string("valid")),
                         .data_format = config.take_or("data_format", std::string()),
                         .name = base.name,
                         .dtype = base.dtype,
                         .trainable = base.trainable};
  const AxisValues size = take_axis_values(config, "pool_size", 2);
  options.strides = take_axis_values(config, "strides", size);
  return make_layer<PoolingLayer>(kind, spatial, size, options);
}

}  // namespace

PoolingLayer::PoolingLayer(Kind kind, int64_t spatial, const AxisValues& pool_size,
                           const PoolingOptions& options)
    : SpatialLayer(str(kind == Kind::max ? "Max" : "Average", "Pooling", spatial, "D"), spatial,
                 options.data_format, {options.name, options.dtype, options.trainable}),
      kind_(kind), padding_(options.padding), pool_size_(each(pool_size, "pool_size")),
      strides_(each(options.strides.value_or(pool_size), "strides")) {
  check_padding(padding_, {"valid", "same"});
}

Json PoolingLayer::config() const {
  Json json = SpatialLayer::config();
  json["pool_size"] = pool_size_;
  json["strides"] = strides_;
  json["padding"] = padding_;
  return json;
}

std::vector<WindowAxis> PoolingLayer::axes(const Shape& x) const {
  return windows(x, pool_size_, strides_, std::vector<int64_t>(pool_size_.size(), 1), padding_);
}

Shape PoolingLayer::image_shape(const Shape& x) const {
  return shape_of(x[0], outputs(x, axes(x)), x.back());
}

DTensor PoolingLayer::transform(const DTensor& x, const CallContext&) {
  const std::vector<WindowAxis> windows = axes(x.shape());
  return kind_ == Kind::max ? ops::max_pool(x, windows) : ops::avg_pool(x, windows);
}

LayerHandle MaxPooling1D::from_config(JsonObject& config) {
  return pooling_from(config, PoolingLayer::Kind::max, 1);
}
LayerHandle MaxPooling2D::from_config(JsonObject& config) {
  return pooling_from(config, PoolingLayer::Kind::max, 2);
}
LayerHandle AveragePooling1D::from_config(JsonObject& config) {
  return pooling_from(config, PoolingLayer::Kind::average, 1);
}
LayerHandle AveragePooling2D::from_config(JsonObject& config) {
  return pooling_from(config, PoolingLayer::Kind::average, 2);
}

}  // namespace tessera
