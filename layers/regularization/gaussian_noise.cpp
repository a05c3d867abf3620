#include <tessera/layers/regularization/gaussian_noise.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(GaussianNoiseOptions& o, const Visit& visit) {
  visit("seed", o.seed);
}

namespace {

class GaussianNoiseLayer final : public Layer {
 public:
  GaussianNoiseLayer(double stddev, const GaussianNoiseOptions& options);
  std::string class_name() const override { return "GaussianNoise"; }
  Json config() const override { return layer_config(*this, {{"stddev", stddev_}}, options_); }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double stddev_;
  GaussianNoiseOptions options_;
};

const RegisteredLayer registered_gaussian_noise("GaussianNoise", [](JsonObject& config) {
  const auto options = layer_options_from<GaussianNoiseOptions>(config);
  return GaussianNoise(config.take<double>("stddev"), options);
});

GaussianNoiseLayer::GaussianNoiseLayer(double stddev, const GaussianNoiseOptions& options)
    : Layer(common_options(options)), stddev_(stddev), options_(options) {
  if (stddev >= 0 && stddev <= 1) return;
  throw ConfigError("GaussianNoise " + options.name, "stddev lies in [0, 1]", str(stddev),
                    "scale the data to about 1");
}

DTensor GaussianNoiseLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || stddev_ == 0) return x;
  return ops::gaussian_noise(x, stddev_, draw_seed(context, path(), x.mesh(), options_.seed));
}

}  // namespace

GaussianNoise::GaussianNoise(double stddev, const GaussianNoiseOptions& options)
    : LayerHandle(std::make_shared<GaussianNoiseLayer>(stddev, options)) {}

}  // namespace tessera
