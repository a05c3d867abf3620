#include <tessera/layers/internal/noise_layer.hpp>

#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/random_layer_check.hpp"

namespace noise_layer_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

struct DropsOptions : LayerOptions {
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;
};
using DropsArguments = RateArguments<DropsOptions>;

class DropsLayer final : public LayerOf<DropsLayer, DropsArguments, NoiseLayer> {
 public:
  static constexpr const char* keras_name = "Drops";
  explicit DropsLayer(const DropsArguments& a) : LayerOf(a, a.rate, a.seed, a.noise_shape) {
    check(where());
  }

 protected:
  DTensor noisy(const DTensor& x, const DTensor& seed) const override {
    return x * factors(x, seed);
  }
};

LayerHandle drops(double rate, const Shape& noise_shape = {}) {
  DropsArguments arguments;
  arguments.name = "d";
  arguments.noise_shape = noise_shape;
  arguments.rate = rate;
  return make_layer<DropsLayer>(arguments);
}

}  // namespace

TEST_CASE("a noise layer changes its input in training only, and not at rate 0") {
  const DTensor x = ones({40, 30});
  CHECK(difference(drops(0.5)(x).full(), x.full()) == "");
  CHECK(difference(drops(0)(x, training_step(0)).full(), x.full()) == "");
  const at::Tensor y = drops(0.5)(x, training_step(0)).full();
  CHECK((y.eq(0) | y.eq(2)).all().item<bool>());
  CHECK(y.mean().item<double>() == Approx(1).margin(0.2));
  check_draws(drops(0.5), x);
}

TEST_CASE("a noise shape with extent 1 shares draws along that axis") {
  const at::Tensor y = drops(0.5, {-1, 1})(ones({40, 30}), training_step(0)).full();
  CHECK(y.eq(y.narrow(1, 0, 1)).all().item<bool>());
  CHECK(y.eq(0).any().item<bool>());
  CHECK(y.eq(2).any().item<bool>());
}

TEST_CASE("a noise layer refuses invalid rates and noise shapes, by name") {
  CHECK_THROWS_WITH(drops(1), Contains("[Drops d] rate lies in [0, 1)"));
  CHECK_THROWS_WITH(drops(0.5, {0}), Contains("[Drops d] noise_shape holds -1"));
  CHECK_THROWS_WITH(drops(0.5, {-1, 7})->output_shape({{2, 3}}), Contains("[Drops d] noise_shape"));
}

TEST_CASE("a noise layer writes rate, seed and noise shape in Keras' order") {
  CHECK_THAT(drops(0.25, {-1, 1})->config().dump(),
             Contains(R"("rate":0.25,"seed":null,"noise_shape":[null,1])"));
  CHECK_THAT(drops(0.25)->config().dump(), Contains(R"("noise_shape":null)"));
}

}  // namespace noise_layer_test
