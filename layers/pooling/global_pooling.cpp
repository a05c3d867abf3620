#include <tessera/layers/pooling/global_pooling.hpp>

#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {


LayerHandle global_from(JsonObject& config, GlobalPoolingLayer::Kind kind, int64_t spatial) {
  const LayerOptions base = take_layer_options(config);
  const GlobalPoolingOptions options{.data_format = config.take_or("data_format", std::string()),
                                     .keepdims = config.take_or("keepdims", false),
                                     .name = base.name,
                                     .dtype = base.dtype,
                                     .trainable = base.trainable};
  return make_layer<GlobalPoolingLayer>(kind, spatial, options);
}

}  // namespace

GlobalPoolingLayer::GlobalPoolingLayer(Kind kind, int64_t spatial,
                                       const GlobalPoolingOptions& options)
    : SpatialLayer(str("Global", kind == Kind::max ? "Max" : "Average", "Pooling", spatial, "D"),
                 spatial, options.data_format, {options.name, options.dtype, options.trainable}),
      kind_(kind), keepdims_(options.keepdims) {}

Json GlobalPoolingLayer::config() const {
  Json json = SpatialLayer::config();
  json["keepdims"] = keepdims_;
  return json;
}

Shape GlobalPoolingLayer::image_shape(const Shape& x) const {
  if (!keepdims_) return {x[0], x.back()};
  return shape_of(x[0], std::vector<int64_t>(size_t(spatial()), 1), x.back());
}

DTensor GlobalPoolingLayer::transform(const DTensor& x, const CallContext&) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < spatial(); ++i) axes.push_back(i + 1);
  if (kind_ == Kind::max) return ops::max(x, axes, keepdims_);
  const DTensor mask = supports_masking() ? x.mask() : DTensor();
  if (!mask.defined()) return ops::mean(x, axes, keepdims_);
  const DTensor counts = ops::expand_dims(ops::cast(mask, x.dtype()), 2);
  return ops::div(ops::sum(x * counts, axes, keepdims_), ops::sum(counts, axes, keepdims_));
}

LayerHandle GlobalMaxPooling1D::from_config(JsonObject& config) {
  return global_from(config, GlobalPoolingLayer::Kind::max, 1);
}
LayerHandle GlobalMaxPooling2D::from_config(JsonObject& config) {
  return global_from(config, GlobalPoolingLayer::Kind::max, 2);
}
LayerHandle GlobalAveragePooling1D::from_config(JsonObject& config) {
  return global_from(config, GlobalPoolingLayer::Kind::average, 1);
}
LayerHandle GlobalAveragePooling2D::from_config(JsonObject& config) {
  return global_from(config, GlobalPoolingLayer::Kind::average, 2);
}

}  // namespace tessera
