#include <tessera/framework/nn/initializers/initializers.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/initializers/internal/draw_as.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomUniformOptions& o, const Visit& visit) {
  visit("minval", o.minval);
  visit("maxval", o.maxval);
  visit("seed", o.seed);
}

template <class Visit>
void fields(RandomNormalOptions& o, const Visit& visit) {
  visit("mean", o.mean);
  visit("stddev", o.stddev);
  visit("seed", o.seed);
}

template <class Visit>
void fields(OrthogonalOptions& o, const Visit& visit) {
  visit("gain", o.gain);
  visit("seed", o.seed);
}

namespace {

const Registered registered_zeros(initializer_factories(), {"zeros", "zero"},
                                  [](JsonObject&) { return Zeros(); });
const Registered registered_ones(initializer_factories(), {"ones", "one"},
                                 [](JsonObject&) { return Ones(); });
const Registered registered_constant(initializer_factories(), {"constant"}, [](JsonObject& config) {
  return Constant(config.take_or<double>("value", 0));
});
const Registered registered_random_uniform(initializer_factories(), {"random_uniform", "uniform"},
                                           made_of<RandomUniform, RandomUniformOptions>);
const Registered registered_random_normal(initializer_factories(), {"random_normal", "normal"},
                                          made_of<RandomNormal, RandomNormalOptions>);
const Registered registered_truncated_normal(initializer_factories(), {"truncated_normal"},
                                             made_of<TruncatedNormal, RandomNormalOptions>);
const Registered registered_orthogonal(initializer_factories(),
                                       {"orthogonal", "orthogonal_initializer"},
                                       made_of<Orthogonal, OrthogonalOptions>);
const Registered registered_identity(initializer_factories(), {"identity", "identity_initializer"},
                                     [](JsonObject& config) {
                                       return IdentityInitializer(
                                           config.take_or<double>("gain", 1));
                                     });

class ConstantInitializer : public Initializer {
 public:
  ConstantInitializer(std::string class_name, double value)
      : class_name_(std::move(class_name)), value_(value) {}
  std::string class_name() const override { return class_name_; }
  Json config() const override {
    return class_name_ == "Constant" ? Json{{"value", value_}} : Json::object();
  }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed) const override {
    return filled(shape, value_, dtype);
  }

 private:
  std::string class_name_;
  double value_;
};

class RandomUniformInitializer : public Initializer {
 public:
  explicit RandomUniformInitializer(RandomUniformOptions options) : options_(options) {
    if (options.minval <= options.maxval) return;
    throw ConfigError("RandomUniform", "minval is at most maxval",
                      str("minval ", options.minval, ", maxval ", options.maxval), "swap them");
  }
  std::string class_name() const override { return "RandomUniform"; }
  Json config() const override { return config_of(options_); }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    const Seed from = options_.seed ? options_.seed->pair() : seed;
    return draw_as(dtype, [&](at::ScalarType type) {
      return stateless_uniform(shape, from, options_.minval, options_.maxval, type);
    });
  }

 private:
  RandomUniformOptions options_;
};

class RandomNormalInitializer : public Initializer {
 public:
  RandomNormalInitializer(RandomNormalOptions options, bool truncated)
      : options_(options), truncated_(truncated) {
    if (options.stddev >= 0) return;
    throw ConfigError(class_name(), "stddev is not negative", str(options.stddev),
                      "give its absolute value");
  }
  std::string class_name() const final { return truncated_ ? "TruncatedNormal" : "RandomNormal"; }
  Json config() const override { return config_of(options_); }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    const Seed from = options_.seed ? options_.seed->pair() : seed;
    return draw_as(dtype, [&](at::ScalarType type) {
      return truncated_
                 ? stateless_truncated_normal(shape, from, options_.mean, options_.stddev, type)
                 : stateless_normal(shape, from, options_.mean, options_.stddev, type);
    });
  }

 private:
  RandomNormalOptions options_;
  bool truncated_;
};

class OrthogonalInitializer : public Initializer {
 public:
  explicit OrthogonalInitializer(OrthogonalOptions options) : options_(options) {}
  std::string class_name() const override { return "Orthogonal"; }
  Json config() const override { return config_of(options_); }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    if (shape.size() < 2) {
      throw ShapeError("Orthogonal", "a weight has at least two axes", to_string(shape),
                       "use another initializer");
    }
    const int64_t columns = shape.back();
    const int64_t rows = columns == 0 ? 0 : numel(shape) / columns;
    const Shape flat{std::max(rows, columns), std::min(rows, columns)};
    at::Tensor normal = at::empty(flat, at::kFloat);
    stateless_normal(options_.seed ? options_.seed->pair() : seed, flat,
                     std::vector<Interval>{{0, flat[0]}, {0, flat[1]}}, 0, 1,
                     normal.data_ptr<float>());
    auto [q, r] = at::linalg_qr(normal.to(at::kDouble));
    q = q * r.diagonal().sign();
    if (rows < columns) q = q.t();
    return pack((q * options_.gain).reshape(shape).to(dtype),
                default_layout(static_cast<int64_t>(shape.size())));
  }

 private:
  OrthogonalOptions options_;
};

class DiagonalInitializer : public Initializer {
 public:
  explicit DiagonalInitializer(double gain) : gain_(gain) {}
  std::string class_name() const override { return "Identity"; }
  Json config() const override { return {{"gain", gain_}}; }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed) const override {
    if (shape.size() != 2) {
      throw ShapeError("Identity", "a weight has two axes", to_string(shape),
                       "use another initializer");
    }
    return pack(at::eye(shape[0], shape[1], dtype).mul_(gain_), default_layout(2));
  }

 private:
  double gain_;
};

template <class Made, class... Args>
InitializerHandle make_initializer_of(Args&&... args) {
  return std::shared_ptr<const Initializer>(std::make_shared<Made>(std::forward<Args>(args)...));
}

}  // namespace

Json SeedOption::json() const {
  if (pair_.b == 0) return pair_.a;
  return Json::array({pair_.a, pair_.b});
}

void detail::json_get(const Json& json, const JsonPath& path, SeedOption& out) {
  if (!json.is_array()) {
    out = json_as<int64_t>(json, path);
    return;
  }
  const auto pair = json_as<std::vector<int64_t>>(json, path);
  if (pair.size() != 2) json_fail(json, path, "an integer or a list of two");
  out = Seed{pair[0], pair[1]};
}

Zeros::Zeros() : InitializerHandle(make_initializer_of<ConstantInitializer>("Zeros", 0.0)) {}
Ones::Ones() : InitializerHandle(make_initializer_of<ConstantInitializer>("Ones", 1.0)) {}
Constant::Constant(double value)
    : InitializerHandle(make_initializer_of<ConstantInitializer>("Constant", value)) {}
RandomUniform::RandomUniform(RandomUniformOptions options)
    : InitializerHandle(make_initializer_of<RandomUniformInitializer>(options)) {}
RandomNormal::RandomNormal(RandomNormalOptions options)
    : InitializerHandle(make_initializer_of<RandomNormalInitializer>(options, false)) {}
TruncatedNormal::TruncatedNormal(RandomNormalOptions options)
    : InitializerHandle(make_initializer_of<RandomNormalInitializer>(options, true)) {}
Orthogonal::Orthogonal(OrthogonalOptions options)
    : InitializerHandle(make_initializer_of<OrthogonalInitializer>(options)) {}
IdentityInitializer::IdentityInitializer(double gain)
    : InitializerHandle(make_initializer_of<DiagonalInitializer>(gain)) {}

}  // namespace tessera
