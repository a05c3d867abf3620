#include <tessera/framework/nn/initializers/regularizers.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/keras_core.hpp"

namespace regularizers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("regularizers give Keras' values and gradients under every layout") {
  const Json file = read_json_file(golden_path("keras_layers.json").string());
  for (const Json& golden : file.at("regularizers")) {
    CAPTURE(golden.at("regularizer").dump());
    const auto regularizer =
        json_as<RegularizerHandle>(golden.at("regularizer"), JsonPath("golden"));
    CHECK(serialized(regularizer).at("config") == golden.at("regularizer").at("config"));
    CHECK(regularizer->can_be_replayed());
    const at::Tensor x = golden_tensor(golden.at("x"));
    const auto penalty = [&](const std::vector<DTensor>& in) { return (*regularizer)(in[0]); };
    const at::Tensor expected = at::scalar_tensor(golden.at("value").get<float>());
    CHECK(wrong_values({x}, penalty, expected, 1e-5) == "");
    const DTensor source = pack(x, Layout::replicated(default_mesh(), x.dim()));
    GradientTape tape;
    tape.watch(source);
    const DTensor gradient = tape.gradient((*regularizer)(source), source);
    const at::Tensor golden_gradient = golden_tensor(golden.at("gradient"));
    CHECK(difference(gradient.full(), golden_gradient, 0,
                     1e-5 * golden_gradient.abs().max().item<double>()) == "");
  }
}

TEST_CASE("gradients of regularizers hold in every layout") {
  const at::Tensor x = at::linspace(-1, 2, 15, at::kDouble).sin().reshape({5, 3}) + 0.1;
  for (const RegularizerHandle& regularizer : {RegularizerHandle(L1L2({.l1 = 0.1, .l2 = 0.4})),
                                               RegularizerHandle("orthogonal_regularizer")}) {
    const auto penalty = [&](const std::vector<DTensor>& in) { return (*regularizer)(in[0]); };
    CHECK(wrong_gradients({x}, penalty) == "");
  }
}

TEST_CASE("penalties on float16 and bfloat16 are summed in float32") {
  const std::vector<std::pair<RegularizerHandle, double>> penalties = {
      {L1(0.5), 1e5}, {L2(0.5), 2e6}, {L1L2({.l1 = 0.5, .l2 = 0.5}), 2.1e6}};
  for (const at::ScalarType half : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = at::full({5000, 2}, 20, half);
    for (const auto& [regularizer, expected] : penalties) {
      const auto penalty = [&r = regularizer](const std::vector<DTensor>& in) {
        return (*r)(in[0]);
      };
      CHECK(wrong_values({x}, penalty, at::scalar_tensor(expected, at::kFloat), 5e-2) == "");
    }
    // Rows of norm 28.3, which are parallel.
    const at::Tensor rows = at::full({2, 2}, 20, half);
    const auto penalty = [](const std::vector<DTensor>& in) {
      return (*OrthogonalRegularizer({.factor = 1}))(in[0]);
    };
    CHECK(wrong_values({rows}, penalty, at::scalar_tensor(1.0, at::kFloat), 5e-2) == "");
  }
}

TEST_CASE("regularizers are made by name, and invalid ones are refused") {
  CHECK(RegularizerHandle("l1")->config().at("l1") == 0.01);
  CHECK(make_regularizer("L2")->class_name() == "L2");
  CHECK(RegularizerHandle("l1_l2")->config() == Json{{"l1", 0.0}, {"l2", 0.0}});
  CHECK(make_regularizer("L1L2")->class_name() == "L1L2");
  CHECK(make_regularizer("OrthogonalRegularizer")->config().at("mode") == "rows");
  CHECK_FALSE(RegularizerHandle());
  CHECK(serialized(RegularizerHandle()).is_null());
  CHECK_THROWS_WITH(RegularizerHandle("l3"), Contains("[regularizer]") && Contains("\"l3\""));
  CHECK_THROWS_WITH(L1(-1), Contains("[L1]") && Contains("Received: -1"));
  CHECK_THROWS_AS(L2(INFINITY), ConfigError);
  CHECK_THROWS_AS(L1L2({.l1 = 0, .l2 = NAN}), ConfigError);
  CHECK_THROWS_AS(OrthogonalRegularizer({.factor = -0.1}), ConfigError);
  CHECK_THROWS_WITH((*OrthogonalRegularizer())(ones({3})), Contains("(3,)"));
}

}  // namespace regularizers_test
