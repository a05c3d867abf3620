#include <tessera/layers/regularization/dropout.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SpatialDropoutOptions& o, const Visit& visit) {
  visit("seed", o.seed);
}

namespace {

class SpatialDropoutLayer final : public Layer {
 public:
  SpatialDropoutLayer(int dimensions, double rate, const SpatialDropoutOptions& options);
  std::string class_name() const override { return str("SpatialDropout", dimensions_, "D"); }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  int dimensions_;
  double rate_;
  bool channels_first_;
  SpatialDropoutOptions options_;
};

LayerHandle spatial_dropout(int dimensions, double rate, const SpatialDropoutOptions& options) {
  return make_layer<SpatialDropoutLayer>(dimensions, rate, options);
}

template <int Dimensions>
LayerHandle spatial_dropout_from(JsonObject& config) {
  auto options = layer_options_from<SpatialDropoutOptions>(config);
  if (Dimensions > 1) read_option(config, "data_format", options.data_format);
  return spatial_dropout(Dimensions, config.take<double>("rate"), options);
}

const RegisteredLayer registered_spatial_dropout_1d("SpatialDropout1D", spatial_dropout_from<1>);
const RegisteredLayer registered_spatial_dropout_2d("SpatialDropout2D", spatial_dropout_from<2>);
const RegisteredLayer registered_spatial_dropout_3d("SpatialDropout3D", spatial_dropout_from<3>);

SpatialDropoutLayer::SpatialDropoutLayer(int dimensions, double rate,
                                         const SpatialDropoutOptions& options)
    : Layer(common_options(options)),
      dimensions_(dimensions),
      rate_(rate),
      channels_first_(options.data_format == "channels_first"),
      options_(options) {
  const std::string where = class_name() + " " + options.name;
  check_rate(where, rate);
  if (options.data_format == "channels_last" || (channels_first_ && dimensions > 1)) return;
  throw ConfigError(where,
                    dimensions == 1 ? "data_format is \"channels_last\""
                                    : "data_format is \"channels_last\" or \"channels_first\"",
                    in_quotes(options.data_format), "leave it out for \"channels_last\"");
}

Json SpatialDropoutLayer::config() const {
  Json json = layer_config(*this, {{"rate", rate_}}, options_);
  // Keras' SpatialDropout1D has no data_format.
  if (dimensions_ > 1) json["data_format"] = options_.data_format;
  return json;
}

Shape SpatialDropoutLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (static_cast<int>(input.size()) == dimensions_ + 2) return input;
  throw ShapeError(class_name() + " " + path(), str("the input has ", dimensions_ + 2, " axes"),
                   to_string(input), "give it batch, spatial and channel axes");
}

DTensor SpatialDropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  NoiseShape noise{Shape(static_cast<size_t>(dimensions_) + 2, 1)};
  noise.shape.front() = -1;
  noise.shape[channels_first_ ? 1 : noise.shape.size() - 1] = -1;
  return x * noise.factors(x, rate_, draw_seed(context, path(), x.mesh(), options_.seed));
}

}  // namespace

SpatialDropout1D::SpatialDropout1D(double rate, const SpatialDropoutOptions& options)
    : LayerHandle(spatial_dropout(1, rate, options)) {}
SpatialDropout2D::SpatialDropout2D(double rate, const SpatialDropoutOptions& options)
    : LayerHandle(spatial_dropout(2, rate, options)) {}
SpatialDropout3D::SpatialDropout3D(double rate, const SpatialDropoutOptions& options)
    : LayerHandle(spatial_dropout(3, rate, options)) {}

}  // namespace tessera
