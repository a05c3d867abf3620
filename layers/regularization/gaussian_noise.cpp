#include <tessera/layers/regularization/gaussian_noise.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/layers/regularization/noise.hpp>

namespace tessera {

GaussianNoiseLayer::GaussianNoiseLayer(double stddev, const GaussianNoiseOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), stddev_(stddev),
      seed_(options.seed) {
  if (stddev >= 0 && stddev <= 1) return;
  throw ConfigError("GaussianNoise " + options.name, "stddev lies in [0, 1]", str(stddev),
                    "scale the data to about 1");
}

Json GaussianNoiseLayer::config() const {
  Json json = Layer::config();
  json["stddev"] = stddev_;
  json["seed"] = seed_ ? Json(*seed_) : Json(nullptr);
  return json;
}

DTensor GaussianNoiseLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || stddev_ == 0) return x;
  return ops::gaussian_noise(x, stddev_, draw_seed(context, path(), x.mesh(), seed_));
}

GaussianNoise GaussianNoise::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto stddev = config.take<double>("stddev");
  return GaussianNoise(stddev, {.seed = config.take_optional<int64_t>("seed"),
                                .name = options.name,
                                .dtype = options.dtype,
                                .trainable = options.trainable});
}

}  // namespace tessera
