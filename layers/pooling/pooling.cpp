#include <tessera/layers/pooling/pooling.hpp>

#include <tessera/framework/ops/pool.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(PoolingOptions& o, const Visit& visit) {
  visit("strides", o.strides);
  visit("padding", o.padding);
  visit("data_format", o.data_format);
}

namespace {

enum class Pool : uint8_t { max, average };

class PoolingLayer final : public SpatialLayer {
 public:
  PoolingLayer(Pool pool, int64_t spatial, const AxisValues& pool_size,
               const PoolingOptions& options);
  Json config() const override {
    return layer_config(*this, {{"data_format", data_format()}, {"pool_size", pool_size_}},
                        options_);
  }

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  std::vector<WindowAxis> axes(const Shape& x) const;

  Pool pool_;
  std::vector<int64_t> pool_size_, strides_;
  PoolingOptions options_;
};

template <Pool pool, int64_t spatial>
LayerHandle pooling_from(JsonObject& config) {
  const auto options = layer_options_from<PoolingOptions>(config);
  const auto pool_size = config.take_or<AxisValues>("pool_size", 2);
  return make_layer<PoolingLayer>(pool, spatial, pool_size, options);
}

const RegisteredLayer registered_max_pooling1d("MaxPooling1D", pooling_from<Pool::max, 1>);
const RegisteredLayer registered_max_pooling2d("MaxPooling2D", pooling_from<Pool::max, 2>);
const RegisteredLayer registered_max_pooling3d("MaxPooling3D", pooling_from<Pool::max, 3>);
const RegisteredLayer registered_average_pooling1d("AveragePooling1D",
                                                   pooling_from<Pool::average, 1>);
const RegisteredLayer registered_average_pooling2d("AveragePooling2D",
                                                   pooling_from<Pool::average, 2>);
const RegisteredLayer registered_average_pooling3d("AveragePooling3D",
                                                   pooling_from<Pool::average, 3>);

PoolingLayer::PoolingLayer(Pool pool, int64_t spatial, const AxisValues& pool_size,
                           const PoolingOptions& options)
    : SpatialLayer(common_options(options),
                   str(pool == Pool::max ? "Max" : "Average", "Pooling", spatial, "D"), spatial,
                   options.data_format),
      pool_(pool),
      pool_size_(each(pool_size, "pool_size")),
      strides_(each(options.strides.value_or(pool_size), "strides")),
      options_(options) {
  check_padding(options.padding, {"valid", "same"});
  options_.strides = strides_;
  options_.data_format = data_format();
}

std::vector<WindowAxis> PoolingLayer::axes(const Shape& x) const {
  return windows(x, pool_size_, strides_, std::vector<int64_t>(pool_size_.size(), 1),
                 options_.padding);
}

Shape PoolingLayer::image_shape(const Shape& x) const {
  return shape_of(x[0], outputs(x, axes(x)), x.back());
}

DTensor PoolingLayer::transform(const DTensor& x, const CallContext&) {
  const std::vector<WindowAxis> windows = axes(x.shape());
  return pool_ == Pool::max ? ops::max_pool(x, windows) : ops::avg_pool(x, windows);
}

}  // namespace

MaxPooling1D::MaxPooling1D(const AxisValues& pool_size, const PoolingOptions& options)
    : LayerHandle(std::make_shared<PoolingLayer>(Pool::max, 1, pool_size, options)) {}
MaxPooling2D::MaxPooling2D(const AxisValues& pool_size, const PoolingOptions& options)
    : LayerHandle(std::make_shared<PoolingLayer>(Pool::max, 2, pool_size, options)) {}
MaxPooling3D::MaxPooling3D(const AxisValues& pool_size, const PoolingOptions& options)
    : LayerHandle(std::make_shared<PoolingLayer>(Pool::max, 3, pool_size, options)) {}
AveragePooling1D::AveragePooling1D(const AxisValues& pool_size, const PoolingOptions& options)
    : LayerHandle(std::make_shared<PoolingLayer>(Pool::average, 1, pool_size, options)) {}
AveragePooling2D::AveragePooling2D(const AxisValues& pool_size, const PoolingOptions& options)
    : LayerHandle(std::make_shared<PoolingLayer>(Pool::average, 2, pool_size, options)) {}
AveragePooling3D::AveragePooling3D(const AxisValues& pool_size, const PoolingOptions& options)
    : LayerHandle(std::make_shared<PoolingLayer>(Pool::average, 3, pool_size, options)) {}

}  // namespace tessera
