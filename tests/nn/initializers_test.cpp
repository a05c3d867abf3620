#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"

namespace initializers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

std::optional<SeedOption> seed_of(const Json& options) {
  if (!options.contains("seed")) return std::nullopt;
  return SeedOption(options.at("seed").get<int64_t>());
}

VarianceScalingOptions scaling(const Json& options) {
  const std::map<std::string, FanMode> modes = {
      {"fan_in", FanMode::fan_in}, {"fan_out", FanMode::fan_out}, {"fan_avg", FanMode::fan_avg}};
  const std::map<std::string, Distribution> kinds = {
      {"truncated_normal", Distribution::truncated_normal},
      {"untruncated_normal", Distribution::untruncated_normal},
      {"uniform", Distribution::uniform}};
  return {.scale = options.at("scale").get<double>(),
          .mode = modes.at(options.at("mode").get<std::string>()),
          .distribution = kinds.at(options.at("distribution").get<std::string>()),
          .seed = seed_of(options)};
}

InitializerHandle make_case(const std::string& name, const Json& o) {
  const SeedOptions seed{.seed = seed_of(o)};
  const RandomNormalOptions normal{
      .mean = option(o, "mean", 0.0), .stddev = option(o, "stddev", 0.05), .seed = seed_of(o)};
  const std::map<std::string, std::function<InitializerHandle()>> makers = {
      {"Zeros", [] { return Zeros(); }},
      {"Ones", [] { return Ones(); }},
      {"Constant", [&] { return Constant(o.at("value").get<double>()); }},
      {"RandomUniform",
       [&] {
         return RandomUniform({.minval = option(o, "minval", -0.05),
                               .maxval = option(o, "maxval", 0.05),
                               .seed = seed_of(o)});
       }},
      {"RandomNormal", [&] { return RandomNormal(normal); }},
      {"TruncatedNormal", [&] { return TruncatedNormal(normal); }},
      {"VarianceScaling", [&] { return VarianceScaling(scaling(o)); }},
      {"GlorotUniform", [&] { return GlorotUniform(seed); }},
      {"GlorotNormal", [&] { return GlorotNormal(seed); }},
      {"HeUniform", [&] { return HeUniform(seed); }},
      {"HeNormal", [&] { return HeNormal(seed); }},
      {"LecunUniform", [&] { return LecunUniform(seed); }},
      {"LecunNormal", [&] { return LecunNormal(seed); }},
      {"Orthogonal",
       [&] { return Orthogonal({.gain = option(o, "gain", 1.0), .seed = seed_of(o)}); }},
      {"Identity", [&] { return IdentityInitializer(option(o, "gain", 1.0)); }},
  };
  return makers.at(name)();
}

const char* const names[] = {"constant",         "glorot_normal",    "glorot_uniform",
                             "he_normal",        "he_uniform",       "identity",
                             "lecun_normal",     "lecun_uniform",    "ones",
                             "orthogonal",       "random_normal",    "random_uniform",
                             "truncated_normal", "variance_scaling", "zeros"};

}  // namespace

TEST_CASE("initializers draw Keras' numbers") {
  for (const Json& golden : keras_core("initializers")) {
    const std::string name = golden.at("name");
    INFO(name << " " << golden.at("options").dump() << " " << golden.at("shape").dump());
    const at::Tensor expected = golden_tensor(golden);
    const InitializerHandle made = make_case(name, golden.at("options"));
    CHECK(made->class_name() == name);
    const at::Tensor drawn =
        made->draw(golden.at("shape").get<Shape>(), at::kFloat, Seed{99, 99}).full();
    const double scale = expected.abs().max().item<double>();
    const double tolerance = name == "Orthogonal" ? 1e-5 : 1e-6;
    CHECK(difference(drawn, expected, tolerance, tolerance * scale) == "");
  }
}

TEST_CASE("a draw into shards is the slice of the full draw") {
  const Shape shape{5, 3};
  for (const char* name : names) {
    const InitializerHandle made(name);
    const at::Tensor full = made->draw(shape, at::kFloat, Seed{7, 8}).full();
    for (const Mesh& mesh :
         {create_mesh({{"x", 3}}), create_mesh({{"x", 2}, {"y", 2}}), create_mesh({{"x", 8}})}) {
      for (const Layout& layout : all_layouts(mesh, 2)) {
        for (BlockPolicy policy : policies) {
          INFO(name << " " << layout.describe() << " " << test::to_string(policy));
          const BlockPolicyScope blocks(policy);
          const DefaultLayoutScope scope(layout);
          const DTensor value = made->draw(shape, at::kFloat, Seed{7, 8});
          CHECK(value.layout() == layout);
          CHECK(wrong_shards(value, full) == "");
        }
      }
    }
  }
}

TEST_CASE("an initializer's own seed overrides the weight's") {
  const Shape shape{4, 4};
  const auto draw = [&](const InitializerHandle& made, Seed seed) {
    return made->draw(shape, at::kFloat, seed).full();
  };
  const at::Tensor seeded = draw(GlorotUniform({.seed = 3}), {1, 2});
  CHECK(difference(draw(GlorotUniform({.seed = 3}), {5, 6}), seeded) == "");
  CHECK(difference(draw(GlorotUniform({.seed = Seed{3, 0}}), {1, 2}), seeded) == "");
  CHECK(difference(draw(GlorotUniform(), {3, 0}), seeded) == "");
  CHECK_FALSE(at::equal(draw(GlorotUniform(), {1, 2}), seeded));
}

TEST_CASE("GlorotUniform with a seed pair is the Core-API guide's Xavier draw") {
  for (const Shape& shape : {Shape{784, 700}, Shape{700, 500}, Shape{500, 10}, Shape{700, 10}}) {
    const float limit = std::sqrt(6.f) / std::sqrt(float(shape[0] + shape[1]));
    const at::Tensor guide = stateless_uniform(shape, Seed{22, 23}, -limit, limit).full();
    const at::Tensor drawn =
        GlorotUniform({.seed = Seed{22, 23}})->draw(shape, at::kFloat, Seed{}).full();
    CHECK(difference(drawn, guide, 2e-7, 2e-7 * limit) == "");
  }
}

TEST_CASE("float64 weights are the float32 draw widened, float16 and bfloat16 the draw rounded") {
  for (const char* name : {"glorot_uniform", "he_normal", "random_normal", "constant"}) {
    const at::Tensor single = InitializerHandle(name)->draw({6, 3}, at::kFloat, Seed{1, 2}).full();
    const at::Tensor wide = InitializerHandle(name)->draw({6, 3}, at::kDouble, Seed{1, 2}).full();
    const at::Tensor half = InitializerHandle(name)->draw({6, 3}, at::kBFloat16, Seed{1, 2}).full();
    CHECK(difference(wide, single.to(at::kDouble)) == "");
    CHECK(difference(half, single.to(at::kBFloat16)) == "");
  }
}

TEST_CASE("an orthogonal draw has orthonormal rows or columns") {
  for (const Shape& shape : {Shape{9, 4}, Shape{4, 9}, Shape{3, 3, 5}}) {
    const at::Tensor q = Orthogonal()->draw(shape, at::kDouble, Seed{4, 5}).full();
    const at::Tensor m = q.reshape({-1, shape.back()});
    const bool tall = m.size(0) >= m.size(1);
    const at::Tensor product = tall ? at::mm(m.t(), m) : at::mm(m, m.t());
    CHECK(difference(product, at::eye(product.size(0), at::kDouble), 0, 1e-12) == "");
  }
}

TEST_CASE("fans match Keras") {
  const auto fans = [](const Shape& shape) {
    const Fans f = compute_fans(shape);
    return std::pair(f.in, f.out);
  };
  CHECK(fans({}) == std::pair<int64_t, int64_t>(1, 1));
  CHECK(fans({7}) == std::pair<int64_t, int64_t>(7, 7));
  CHECK(fans({4, 5}) == std::pair<int64_t, int64_t>(4, 5));
  CHECK(fans({3, 2, 4, 5}) == std::pair<int64_t, int64_t>(24, 30));
}

TEST_CASE("initializers are known by both of Keras' names") {
  for (const char* name : names) {
    const InitializerHandle made(name);
    CHECK(InitializerHandle(made->class_name())->class_name() == made->class_name());
  }
  CHECK_THROWS_WITH(InitializerHandle("glorot_unifrom"),
                    Catch::Contains("glorot_unifrom") && Catch::Contains("\"glorot_uniform\""));
  CHECK_THROWS_AS(InitializerHandle("glorot_unifrom"), ConfigError);
}

TEST_CASE("invalid options of an initializer are named") {
  CHECK_THROWS_AS(RandomUniform({.minval = 2, .maxval = 1}), ConfigError);
  CHECK_THROWS_AS(RandomNormal({.stddev = -1}), ConfigError);
  CHECK_THROWS_AS(VarianceScaling({.scale = 0}), ConfigError);
  CHECK_THROWS_AS(Orthogonal()->draw({4}, at::kFloat, Seed{}), ShapeError);
  CHECK_THROWS_AS(IdentityInitializer()->draw({4, 4, 4}, at::kFloat, Seed{}), ShapeError);
}

TEST_CASE("an initializer returns its configuration") {
  CHECK(GlorotUniform({.seed = 3})->config() == Json({{"seed", 3}}));
  CHECK(GlorotUniform()->config() == Json({{"seed", nullptr}}));
  CHECK(GlorotUniform({.seed = Seed{22, 23}})->config() == Json({{"seed", {22, 23}}}));
  CHECK(Constant(2)->config() == Json({{"value", 2.0}}));
  CHECK(VarianceScaling({.mode = FanMode::fan_avg})->config().at("mode") == "fan_avg");
}

}  // namespace initializers_test
