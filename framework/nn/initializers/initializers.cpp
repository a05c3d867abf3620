#include <tessera/framework/nn/initializers/initializers.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>

namespace tessera {
namespace {

Json seed_json(const std::optional<SeedOption>& seed) {
  if (!seed) return nullptr;
  const Seed pair = seed->pair();
  if (pair.b == 0) return pair.a;
  return Json::array({pair.a, pair.b});
}

/// Draws come as float32, or float64 widened from it; other dtypes are rounded from float32.
template <class Draw>
DTensor draw_as(at::ScalarType dtype, const Draw& draw) {
  const NoRecording untaped;
  return dtype == at::kDouble ? draw(at::kDouble) : ops::cast(draw(at::kFloat), dtype);
}

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
  Json config() const override {
    return {{"minval", options_.minval},
            {"maxval", options_.maxval},
            {"seed", seed_json(options_.seed)}};
  }
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
  Json config() const override {
    return {
        {"mean", options_.mean}, {"stddev", options_.stddev}, {"seed", seed_json(options_.seed)}};
  }
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

const char* mode_name(FanMode mode) {
  switch (mode) {
    case FanMode::fan_in:
      return "fan_in";
    case FanMode::fan_out:
      return "fan_out";
    case FanMode::fan_avg:
      return "fan_avg";
  }
  return "";
}

const char* distribution_name(Distribution distribution) {
  switch (distribution) {
    case Distribution::truncated_normal:
      return "truncated_normal";
    case Distribution::untruncated_normal:
      return "untruncated_normal";
    case Distribution::uniform:
      return "uniform";
  }
  return "";
}

/// VarianceScaling, and its special cases, whose configuration is the seed alone.
class VarianceScalingInitializer : public Initializer {
 public:
  VarianceScalingInitializer(std::string class_name, VarianceScalingOptions options)
      : class_name_(std::move(class_name)), options_(options) {
    if (options.scale > 0) return;
    throw ConfigError(class_name_, "scale is positive", str(options.scale), "use 1 or 2");
  }
  std::string class_name() const override { return class_name_; }
  Json config() const override {
    Json config = Json::object();
    if (class_name_ == "VarianceScaling") {
      config = {{"scale", options_.scale},
                {"mode", mode_name(options_.mode)},
                {"distribution", distribution_name(options_.distribution)}};
    }
    config["seed"] = seed_json(options_.seed);
    return config;
  }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    // The standard deviation of a standard normal cut off at two.
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

class OrthogonalInitializer : public Initializer {
 public:
  explicit OrthogonalInitializer(OrthogonalOptions options) : options_(options) {}
  std::string class_name() const override { return "Orthogonal"; }
  Json config() const override {
    return {{"gain", options_.gain}, {"seed", seed_json(options_.seed)}};
  }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    if (shape.size() < 2) {
      throw ShapeError("Orthogonal", "a weight has at least two axes", to_string(shape),
                       "use another initializer");
    }
    const c10::InferenceMode inference;
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
    const c10::InferenceMode inference;
    return pack(at::eye(shape[0], shape[1], dtype).mul_(gain_), default_layout(2));
  }

 private:
  double gain_;
};

InitializerHandle scaling(const char* class_name, double scale, FanMode mode,
                       Distribution distribution, SeedOptions options) {
  return std::shared_ptr<const Initializer>(std::make_shared<VarianceScalingInitializer>(
      class_name, VarianceScalingOptions{scale, mode, distribution, options.seed}));
}

template <class Made, class... Args>
InitializerHandle make_initializer_of(Args&&... args) {
  return std::shared_ptr<const Initializer>(std::make_shared<Made>(std::forward<Args>(args)...));
}

}  // namespace

Fans compute_fans(const Shape& shape) {
  if (shape.empty()) return {1, 1};
  if (shape.size() == 1) return {shape[0], shape[0]};
  int64_t window = 1;
  for (size_t a = 0; a + 2 < shape.size(); ++a) window *= shape[a];
  return {shape[shape.size() - 2] * window, shape.back() * window};
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
VarianceScaling::VarianceScaling(VarianceScalingOptions options)
    : InitializerHandle(
          make_initializer_of<VarianceScalingInitializer>("VarianceScaling", options)) {}
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
Orthogonal::Orthogonal(OrthogonalOptions options)
    : InitializerHandle(make_initializer_of<OrthogonalInitializer>(options)) {}
IdentityInitializer::IdentityInitializer(double gain)
    : InitializerHandle(make_initializer_of<DiagonalInitializer>(gain)) {}

}  // namespace tessera
