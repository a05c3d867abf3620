#include <tessera/layers/pooling/global_pooling.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(GlobalPoolingOptions& o, const Visit& visit) {
  visit("data_format", o.data_format);
  visit("keepdims", o.keepdims);
}

namespace {

enum class GlobalPool : uint8_t { max, average };

class GlobalPoolingLayer final : public SpatialLayer {
 public:
  GlobalPoolingLayer(GlobalPool pool, int64_t spatial, const GlobalPoolingOptions& options);
  Json config() const override { return layer_config(*this, Json::object(), options_); }
  bool supports_masking() const override { return pool_ == GlobalPool::average && spatial() == 1; }

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs&, size_t) override { return {}; }

 private:
  GlobalPool pool_;
  GlobalPoolingOptions options_;
};

template <GlobalPool pool, int64_t spatial>
LayerHandle global_pooling_from(JsonObject& config) {
  const auto options = layer_options_from<GlobalPoolingOptions>(config);
  return make_layer<GlobalPoolingLayer>(pool, spatial, options);
}

const RegisteredLayer registered_global_max_pooling1d("GlobalMaxPooling1D",
                                                      global_pooling_from<GlobalPool::max, 1>);
const RegisteredLayer registered_global_max_pooling2d("GlobalMaxPooling2D",
                                                      global_pooling_from<GlobalPool::max, 2>);
const RegisteredLayer registered_global_max_pooling3d("GlobalMaxPooling3D",
                                                      global_pooling_from<GlobalPool::max, 3>);
const RegisteredLayer registered_global_average_pooling1d(
    "GlobalAveragePooling1D", global_pooling_from<GlobalPool::average, 1>);
const RegisteredLayer registered_global_average_pooling2d(
    "GlobalAveragePooling2D", global_pooling_from<GlobalPool::average, 2>);
const RegisteredLayer registered_global_average_pooling3d(
    "GlobalAveragePooling3D", global_pooling_from<GlobalPool::average, 3>);

GlobalPoolingLayer::GlobalPoolingLayer(GlobalPool pool, int64_t spatial,
                                       const GlobalPoolingOptions& options)
    : SpatialLayer(
          common_options(options),
          str("Global", pool == GlobalPool::max ? "Max" : "Average", "Pooling", spatial, "D"),
          spatial, options.data_format),
      pool_(pool),
      options_(options) {
  options_.data_format = data_format();
}

Shape GlobalPoolingLayer::image_shape(const Shape& x) const {
  if (!options_.keepdims) return {x[0], x.back()};
  return shape_of(x[0], std::vector<int64_t>(size_t(spatial()), 1), x.back());
}

DTensor GlobalPoolingLayer::transform(const DTensor& x, const CallContext&) {
  const bool keepdims = options_.keepdims;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < spatial(); ++i) axes.push_back(i + 1);
  if (pool_ == GlobalPool::max) return ops::max(x, axes, keepdims);
  const DTensor mask = supports_masking() ? x.mask() : DTensor();
  if (!mask.defined()) return ops::mean(x, axes, keepdims);
  // Sums in float16 and bfloat16 overflow or lose precision.
  const DTensor wide = widened(x);
  const DTensor counts = ops::expand_dims(ops::cast(mask, wide.dtype()), 2);
  const DTensor total = ops::sum(wide * counts, axes, keepdims);
  return ops::cast(total / ops::sum(counts, axes, keepdims), x.dtype());
}

}  // namespace

GlobalMaxPooling1D::GlobalMaxPooling1D(const GlobalPoolingOptions& options)
    : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPool::max, 1, options)) {}
GlobalMaxPooling2D::GlobalMaxPooling2D(const GlobalPoolingOptions& options)
    : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPool::max, 2, options)) {}
GlobalMaxPooling3D::GlobalMaxPooling3D(const GlobalPoolingOptions& options)
    : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPool::max, 3, options)) {}
GlobalAveragePooling1D::GlobalAveragePooling1D(const GlobalPoolingOptions& options)
    : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPool::average, 1, options)) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(const GlobalPoolingOptions& options)
    : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPool::average, 2, options)) {}
GlobalAveragePooling3D::GlobalAveragePooling3D(const GlobalPoolingOptions& options)
    : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPool::average, 3, options)) {}

}  // namespace tessera
