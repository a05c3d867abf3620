#include <tessera/layers/pooling/adaptive_pooling.hpp>

#include <tessera/framework/ops/pool.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AdaptivePoolingOptions& o, const Visit& visit) {
  visit("data_format", o.data_format);
}

namespace {

enum class AdaptivePool : uint8_t { max, average };

class AdaptivePoolingLayer final : public SpatialLayer {
 public:
  AdaptivePoolingLayer(AdaptivePool pool, int64_t spatial, const AxisValues& output_size,
                       const AdaptivePoolingOptions& options);
  Json config() const override {
    return layer_config(*this, {{"output_size", output_size_}}, options_);
  }

 protected:
  Shape image_shape(const Shape& x) const override {
    return shape_of(x[0], output_size_, x.back());
  }
  DTensor transform(const DTensor& x, const CallContext&) override {
    return pool_ == AdaptivePool::max ? ops::adaptive_max_pool(x, output_size_)
                                      : ops::adaptive_avg_pool(x, output_size_);
  }

 private:
  AdaptivePool pool_;
  std::vector<int64_t> output_size_;
  AdaptivePoolingOptions options_;
};

template <AdaptivePool pool, int64_t spatial>
LayerHandle adaptive_pooling_from(JsonObject& config) {
  const auto options = layer_options_from<AdaptivePoolingOptions>(config);
  const auto output_size = config.take<AxisValues>("output_size");
  return make_layer<AdaptivePoolingLayer>(pool, spatial, output_size, options);
}

const RegisteredLayer registered_adaptive_average_pooling1d(
    "AdaptiveAveragePooling1D", adaptive_pooling_from<AdaptivePool::average, 1>);
const RegisteredLayer registered_adaptive_average_pooling2d(
    "AdaptiveAveragePooling2D", adaptive_pooling_from<AdaptivePool::average, 2>);
const RegisteredLayer registered_adaptive_average_pooling3d(
    "AdaptiveAveragePooling3D", adaptive_pooling_from<AdaptivePool::average, 3>);
const RegisteredLayer registered_adaptive_max_pooling1d(
    "AdaptiveMaxPooling1D", adaptive_pooling_from<AdaptivePool::max, 1>);
const RegisteredLayer registered_adaptive_max_pooling2d(
    "AdaptiveMaxPooling2D", adaptive_pooling_from<AdaptivePool::max, 2>);
const RegisteredLayer registered_adaptive_max_pooling3d(
    "AdaptiveMaxPooling3D", adaptive_pooling_from<AdaptivePool::max, 3>);

AdaptivePoolingLayer::AdaptivePoolingLayer(AdaptivePool pool, int64_t spatial,
                                           const AxisValues& output_size,
                                           const AdaptivePoolingOptions& options)
    : SpatialLayer(
          common_options(options),
          str("Adaptive", pool == AdaptivePool::max ? "Max" : "Average", "Pooling", spatial, "D"),
          spatial, options.data_format),
      pool_(pool),
      output_size_(each(output_size, "output_size")),
      options_(options) {
  options_.data_format = data_format();
}

}  // namespace

AdaptiveAveragePooling1D::AdaptiveAveragePooling1D(const AxisValues& output_size,
                                                   const AdaptivePoolingOptions& options)
    : LayerHandle(
          std::make_shared<AdaptivePoolingLayer>(AdaptivePool::average, 1, output_size, options)) {}
AdaptiveAveragePooling2D::AdaptiveAveragePooling2D(const AxisValues& output_size,
                                                   const AdaptivePoolingOptions& options)
    : LayerHandle(
          std::make_shared<AdaptivePoolingLayer>(AdaptivePool::average, 2, output_size, options)) {}
AdaptiveAveragePooling3D::AdaptiveAveragePooling3D(const AxisValues& output_size,
                                                   const AdaptivePoolingOptions& options)
    : LayerHandle(
          std::make_shared<AdaptivePoolingLayer>(AdaptivePool::average, 3, output_size, options)) {}
AdaptiveMaxPooling1D::AdaptiveMaxPooling1D(const AxisValues& output_size,
                                           const AdaptivePoolingOptions& options)
    : LayerHandle(
          std::make_shared<AdaptivePoolingLayer>(AdaptivePool::max, 1, output_size, options)) {}
AdaptiveMaxPooling2D::AdaptiveMaxPooling2D(const AxisValues& output_size,
                                           const AdaptivePoolingOptions& options)
    : LayerHandle(
          std::make_shared<AdaptivePoolingLayer>(AdaptivePool::max, 2, output_size, options)) {}
AdaptiveMaxPooling3D::AdaptiveMaxPooling3D(const AxisValues& output_size,
                                           const AdaptivePoolingOptions& options)
    : LayerHandle(
          std::make_shared<AdaptivePoolingLayer>(AdaptivePool::max, 3, output_size, options)) {}

}  // namespace tessera
