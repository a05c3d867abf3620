#include <algorithm>
#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/nn/initializers/internal/draw_as.hpp>

namespace tessera {

using namespace detail;

/// Reads an enumerator by Keras' exact name; keeps `out` if the key is absent or null.
template <class E>
void read_name(JsonObject& config, const std::string& key, E& out) {
  const auto known = names_of(out);
  const std::vector<std::string> names(known.begin(), known.end());
  const auto name = config.take_or(key, names[static_cast<size_t>(out)]);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    json_fail(name, config.path().key(key), "one of " + quoted_list(names));
  }
  out = static_cast<E>(found - names.begin());
}
void read_option(JsonObject& config, const std::string& key, FanMode& out) {
  read_name(config, key, out);
}
void read_option(JsonObject& config, const std::string& key, Distribution& out) {
  read_name(config, key, out);
}

template <class Visit>
void fields(VarianceScalingOptions& o, const Visit& visit) {
  visit("scale", o.scale);
  visit("mode", o.mode);
  visit("distribution", o.distribution);
  visit("seed", o.seed);
}

template <class Visit>
void fields(SeedOptions& o, const Visit& visit) {
  visit("seed", o.seed);
}

namespace {

/// Creates an initializer from its "config". Keras' "input_axes" and "output_axes" are not
/// supported: the last two axes are used.
template <class Made, class Options>
InitializerHandle scaled(JsonObject& config) {
  take_nulls(config, {"input_axes", "output_axes"});
  return made_of<Made, Options>(config);
}

const Registered registered_variance_scaling(initializer_factories(), {"variance_scaling"},
                                             scaled<VarianceScaling, VarianceScalingOptions>);
const Registered registered_glorot_uniform(initializer_factories(), {"glorot_uniform"},
                                           scaled<GlorotUniform, SeedOptions>);
const Registered registered_glorot_normal(initializer_factories(), {"glorot_normal"},
                                          scaled<GlorotNormal, SeedOptions>);
const Registered registered_he_uniform(initializer_factories(), {"he_uniform"},
                                       scaled<HeUniform, SeedOptions>);
const Registered registered_he_normal(initializer_factories(), {"he_normal"},
                                      scaled<HeNormal, SeedOptions>);
const Registered registered_lecun_uniform(initializer_factories(), {"lecun_uniform"},
                                          scaled<LecunUniform, SeedOptions>);
const Registered registered_lecun_normal(initializer_factories(), {"lecun_normal"},
                                         scaled<LecunNormal, SeedOptions>);

/// VarianceScaling and its special cases, which have a seed as their only option.
class VarianceScalingInitializer : public Initializer {
 public:
  VarianceScalingInitializer(std::string class_name, VarianceScalingOptions options)
      : class_name_(std::move(class_name)), options_(options) {
    if (options.scale > 0) return;
    throw ConfigError(class_name_, "scale is positive", str(options.scale), "use 1 or 2");
  }
  std::string class_name() const override { return class_name_; }
  Json config() const override {
    if (class_name_ == "VarianceScaling") return config_of(options_);
    return config_of(SeedOptions{options_.seed});
  }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    // The standard deviation of a standard normal truncated to [-2, 2].
    constexpr double truncated_stddev = 0.87962566103423978;
    const Seed from = options_.seed ? options_.seed->pair() : seed;
    const double variance = options_.scale / std::max(1.0, fan(shape));
    const double stddev = std::sqrt(variance);
    return draw_as(dtype, [&](at::ScalarType type) {
      switch (options_.distribution) {
        case Distribution::untruncated_normal:
          return stateless_normal(shape, from, 0, stddev, type);
        case Distribution::truncated_normal:
          return stateless_truncated_normal(shape, from, 0, stddev / truncated_stddev, type);
        case Distribution::uniform:
          break;
      }
      const double limit = std::sqrt(3 * variance);
      return stateless_uniform(shape, from, -limit, limit, type);
    });
  }

 private:
  double fan(const Shape& shape) const {
    const Fans fans = compute_fans(shape);
    if (options_.mode == FanMode::fan_in) return double(fans.in);
    if (options_.mode == FanMode::fan_out) return double(fans.out);
    return double(fans.in + fans.out) / 2;
  }

  std::string class_name_;
  VarianceScalingOptions options_;
};

InitializerHandle scaling(const char* class_name, double scale, FanMode mode,
                          Distribution distribution, SeedOptions options) {
  return std::shared_ptr<const Initializer>(std::make_shared<VarianceScalingInitializer>(
      class_name, VarianceScalingOptions{scale, mode, distribution, options.seed}));
}

}  // namespace

Fans detail::compute_fans(const Shape& shape) {
  if (shape.empty()) return {1, 1};
  if (shape.size() == 1) return {shape[0], shape[0]};
  int64_t window = 1;
  for (size_t a = 0; a + 2 < shape.size(); ++a) window *= shape[a];
  return {shape[shape.size() - 2] * window, shape.back() * window};
}

VarianceScaling::VarianceScaling(VarianceScalingOptions options)
    : InitializerHandle(std::make_shared<VarianceScalingInitializer>("VarianceScaling", options)) {}
GlorotUniform::GlorotUniform(SeedOptions options)
    : InitializerHandle(
          scaling("GlorotUniform", 1, FanMode::fan_avg, Distribution::uniform, options)) {}
GlorotNormal::GlorotNormal(SeedOptions options)
    : InitializerHandle(
          scaling("GlorotNormal", 1, FanMode::fan_avg, Distribution::truncated_normal, options)) {}
HeUniform::HeUniform(SeedOptions options)
    : InitializerHandle(scaling("HeUniform", 2, FanMode::fan_in, Distribution::uniform, options)) {}
HeNormal::HeNormal(SeedOptions options)
    : InitializerHandle(
          scaling("HeNormal", 2, FanMode::fan_in, Distribution::truncated_normal, options)) {}
LecunUniform::LecunUniform(SeedOptions options)
    : InitializerHandle(
          scaling("LecunUniform", 1, FanMode::fan_in, Distribution::uniform, options)) {}
LecunNormal::LecunNormal(SeedOptions options)
    : InitializerHandle(
          scaling("LecunNormal", 1, FanMode::fan_in, Distribution::truncated_normal, options)) {}

}  // namespace tessera
