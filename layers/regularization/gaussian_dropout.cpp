#include <tessera/layers/regularization/gaussian_dropout.hpp>

#include <cmath>

#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/regularization/noise.hpp>

namespace tessera {

GaussianDropoutLayer::GaussianDropoutLayer(double rate, const GaussianDropoutOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), rate_(rate), seed_(options.seed) {
  check_rate("GaussianDropout " + options.name, rate);
}

Json GaussianDropoutLayer::config() const {
  Json json = Layer::config();
  json["rate"] = rate_;
  json["seed"] = seed_ ? Json(*seed_) : Json(nullptr);
  return json;
}

DTensor GaussianDropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  const double stddev = std::sqrt(rate_ / (1 - rate_));
  return ops::gaussian_dropout(x, stddev, draw_seed(context, path(), x.mesh(), seed_));
}

GaussianDropout GaussianDropout::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto rate = config.take<double>("rate");
  return GaussianDropout(rate, {.seed = config.take_optional<int64_t>("seed"),
                                .name = options.name,
                                .dtype = options.dtype,
                                .trainable = options.trainable});
}

}  // namespace tessera
