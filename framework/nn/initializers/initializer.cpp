#include <tessera/framework/nn/initializers/initializer.hpp>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>

namespace tessera {
namespace {

std::optional<SeedOption> take_seed(JsonObject& config) {
  const auto seed = config.take_optional<Json>("seed");
  if (!seed) return std::nullopt;
  const JsonPath path = config.path().key("seed");
  if (!seed->is_array()) return SeedOption(json_as<int64_t>(*seed, path));
  const auto pair = json_as<std::vector<int64_t>>(*seed, path);
  if (pair.size() != 2) json_fail(*seed, path, "a whole number or a list of two");
  return SeedOption(Seed{pair[0], pair[1]});
}

/// One of an enumeration's names, which stand in the order of its values.
template <class Enum>
Enum take_enum(JsonObject& config, const std::string& key, const std::vector<std::string>& names,
               Enum otherwise) {
  const auto name = config.take_or(key, names[size_t(otherwise)]);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  json_fail(name, config.path().key(key), "one of " + quoted_list(names));
}

template <class Made>
InitializerHandle uniform_or_normal(JsonObject& config) {
  take_nulls(config, {"input_axes", "output_axes"});
  return Made({.seed = take_seed(config)});
}

InitializerHandle random_uniform(JsonObject& config) {
  RandomUniformOptions options;
  options.minval = config.take_or("minval", options.minval);
  options.maxval = config.take_or("maxval", options.maxval);
  options.seed = take_seed(config);
  return RandomUniform(options);
}

template <class Made>
InitializerHandle random_normal(JsonObject& config) {
  RandomNormalOptions options;
  options.mean = config.take_or("mean", options.mean);
  options.stddev = config.take_or("stddev", options.stddev);
  options.seed = take_seed(config);
  return Made(options);
}

InitializerHandle variance_scaling(JsonObject& config) {
  VarianceScalingOptions options;
  options.scale = config.take_or("scale", options.scale);
  options.mode = take_enum(config, "mode", {"fan_in", "fan_out", "fan_avg"}, options.mode);
  options.distribution =
      take_enum(config, "distribution", {"truncated_normal", "untruncated_normal", "uniform"},
                options.distribution);
  options.seed = take_seed(config);
  take_nulls(config, {"input_axes", "output_axes"});
  return VarianceScaling(options);
}

InitializerHandle orthogonal(JsonObject& config) {
  const auto gain = config.take_or<double>("gain", 1);
  return Orthogonal({.gain = gain, .seed = take_seed(config)});
}

InitializerHandle identity(JsonObject& config) {
  return IdentityInitializer(config.take_or<double>("gain", 1));
}

InitializerHandle all_ones(JsonObject&) { return Ones(); }
InitializerHandle all_zeros(JsonObject&) { return Zeros(); }

}  // namespace

const ConfigFactories<InitializerHandle>& initializer_factories() {
  static const ConfigFactories<InitializerHandle> factories = {
      {"constant", [](JsonObject& config) { return Constant(config.take_or<double>("value", 0)); }},
      {"glorot_normal", uniform_or_normal<GlorotNormal>},
      {"glorot_uniform", uniform_or_normal<GlorotUniform>},
      {"he_normal", uniform_or_normal<HeNormal>},
      {"he_uniform", uniform_or_normal<HeUniform>},
      {"identity", identity},
      {"identity_initializer", identity},
      {"lecun_normal", uniform_or_normal<LecunNormal>},
      {"lecun_uniform", uniform_or_normal<LecunUniform>},
      {"normal", random_normal<RandomNormal>},
      {"one", all_ones},
      {"ones", all_ones},
      {"orthogonal", orthogonal},
      {"orthogonal_initializer", orthogonal},
      {"random_normal", random_normal<RandomNormal>},
      {"random_uniform", random_uniform},
      {"truncated_normal", random_normal<TruncatedNormal>},
      {"uniform", random_uniform},
      {"variance_scaling", variance_scaling},
      {"zero", all_zeros},
      {"zeros", all_zeros},
  };
  return factories;
}

InitializerHandle make_initializer(const std::string& name) {
  return make_default("initializer", initializer_factories(), name);
}

InitializerHandle::InitializerHandle(const std::string& name)
    : InitializerHandle(make_initializer(name)) {}

}  // namespace tessera
