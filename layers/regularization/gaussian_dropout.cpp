#include <tessera/layers/regularization/dropout.hpp>

#include <cmath>

#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(GaussianDropoutOptions& o, const Visit& visit) {
  visit("seed", o.seed);
}

namespace {

class GaussianDropoutLayer final : public Layer {
 public:
  GaussianDropoutLayer(double rate, const GaussianDropoutOptions& options);
  std::string class_name() const override { return "GaussianDropout"; }
  Json config() const override { return layer_config(*this, {{"rate", rate_}}, options_); }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double rate_;
  GaussianDropoutOptions options_;
};

const RegisteredLayer registered_gaussian_dropout("GaussianDropout", [](JsonObject& config) {
  const auto options = layer_options_from<GaussianDropoutOptions>(config);
  return GaussianDropout(config.take<double>("rate"), options);
});

GaussianDropoutLayer::GaussianDropoutLayer(double rate, const GaussianDropoutOptions& options)
    : Layer(common_options(options)), rate_(rate), options_(options) {
  check_rate("GaussianDropout " + options.name, rate);
}

DTensor GaussianDropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  const double stddev = std::sqrt(rate_ / (1 - rate_));
  return ops::gaussian_dropout(x, stddev, draw_seed(context, path(), x.mesh(), options_.seed));
}

}  // namespace

GaussianDropout::GaussianDropout(double rate, const GaussianDropoutOptions& options)
    : LayerHandle(std::make_shared<GaussianDropoutLayer>(rate, options)) {}

}  // namespace tessera
