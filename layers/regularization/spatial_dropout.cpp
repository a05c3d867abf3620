#include <tessera/layers/regularization/dropout.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/noise_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

template <int dimensions>
struct SpatialDropoutArguments : RateArguments<SpatialDropoutOptions> {};

template <int dimensions, class Visit>
void fields(SpatialDropoutArguments<dimensions>& a, const Visit& visit) {
  RateArguments<SpatialDropoutOptions>& common = a;
  fields(common, visit);
  // Keras' SpatialDropout1D has no data_format.
  if constexpr (dimensions > 1) visit("data_format", a.data_format);
}

/// Returns the noise shape of one choice per row and channel.
Shape one_per_channel(int dimensions, const std::string& data_format) {
  Shape shape(static_cast<size_t>(dimensions) + 2, 1);
  shape.front() = -1;
  shape[data_format == "channels_first" ? 1 : shape.size() - 1] = -1;
  return shape;
}

void check_data_format(const std::string& where, int dimensions, const std::string& data_format) {
  if (data_format == "channels_last") return;
  if (data_format == "channels_first" && dimensions > 1) return;
  throw ConfigError(where,
                    dimensions == 1 ? "data_format is \"channels_last\""
                                    : "data_format is \"channels_last\" or \"channels_first\"",
                    in_quotes(data_format), "leave it out for \"channels_last\"");
}

constexpr const char* spatial_dropout_names[] = {"SpatialDropout1D", "SpatialDropout2D",
                                                 "SpatialDropout3D"};

template <int dimensions>
class SpatialDropoutLayer final : public LayerOf<SpatialDropoutLayer<dimensions>,
                                                 SpatialDropoutArguments<dimensions>, NoiseLayer> {
 public:
  static constexpr const char* keras_name = spatial_dropout_names[dimensions - 1];
  explicit SpatialDropoutLayer(const SpatialDropoutArguments<dimensions>& a)
      : SpatialDropoutLayer::LayerOf(a, a.rate, a.seed,
                                     one_per_channel(dimensions, a.data_format)) {
    this->check(this->where());
    check_data_format(this->where(), dimensions, a.data_format);
  }
  Shape output_shape(const Shapes& inputs) const override {
    const Shape& input = this->single_input(inputs);
    if (input.size() == dimensions + 2) return input;
    throw ShapeError(this->where(), str("the input has ", dimensions + 2, " axes"),
                     to_string(input), "give it batch, spatial and channel axes");
  }

 protected:
  DTensor noisy(const DTensor& x, const DTensor& seed) const override {
    return x * this->factors(x, seed);
  }
};

const RegisteredLayerOf<SpatialDropoutLayer<1>> registered_spatial_dropout_1d;
const RegisteredLayerOf<SpatialDropoutLayer<2>> registered_spatial_dropout_2d;
const RegisteredLayerOf<SpatialDropoutLayer<3>> registered_spatial_dropout_3d;

template <int dimensions>
LayerHandle spatial_dropout(double rate, const SpatialDropoutOptions& options) {
  return make_layer<SpatialDropoutLayer<dimensions>>(
      SpatialDropoutArguments<dimensions>{{options, rate}});
}

}  // namespace

SpatialDropout1D::SpatialDropout1D(double rate, const SpatialDropoutOptions& options)
    : LayerHandle(spatial_dropout<1>(rate, options)) {}
SpatialDropout2D::SpatialDropout2D(double rate, const SpatialDropoutOptions& options)
    : LayerHandle(spatial_dropout<2>(rate, options)) {}
SpatialDropout3D::SpatialDropout3D(double rate, const SpatialDropoutOptions& options)
    : LayerHandle(spatial_dropout<3>(rate, options)) {}

}  // namespace tessera
