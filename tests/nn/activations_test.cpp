#include <tessera/framework/nn/activations/activation_functions.hpp>

#include <ATen/ATen.h>

#include <set>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layouts.hpp"

namespace activations_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Calls the function of a golden case.
DTensor call(const Json& golden, const DTensor& x) {
  const std::string name = golden.at("name");
  const Json& options = golden.at("arguments");
  const auto number = [&](const char* key, double otherwise) {
    return option(options, key, otherwise);
  };
  const int64_t axis = option<int64_t>(options, "axis", -1);
  if (options.empty()) return ActivationHandle(name)(x);
  if (name == "celu") return activations::celu(x, number("alpha", 1));
  if (name == "elu") return activations::elu(x, number("alpha", 1));
  if (name == "gelu") return activations::gelu(x, option(options, "approximate", false));
  if (name == "glu") return activations::glu(x, axis);
  if (name == "hard_shrink") return activations::hard_shrink(x, number("threshold", 0.5));
  if (name == "leaky_relu") return activations::leaky_relu(x, number("negative_slope", 0.2));
  if (name == "log_softmax") return activations::log_softmax(x, axis);
  if (name == "soft_shrink") return activations::soft_shrink(x, number("threshold", 0.5));
  if (name == "softmax") return activations::softmax(x, axis);
  if (name == "sparsemax") return activations::sparsemax(x, axis);
  if (name == "squareplus") return activations::squareplus(x, number("b", 4));
  if (name == "threshold") {
    return activations::threshold(x, number("threshold", 0), number("default_value", 0));
  }
  REQUIRE(name == "relu");
  std::optional<double> max_value;
  if (options.contains("max_value")) max_value = options.at("max_value").get<double>();
  return activations::relu(x, number("negative_slope", 0), max_value, number("threshold", 0));
}

void check(const Json& golden, const Layout& layout) {
  const DTensor x = pack(input_tensor(golden.at("x")), layout);
  GradientTape tape;
  tape.watch(x);
  const DTensor y = call(golden, x);
  const at::Tensor factors = upstream(at::empty(y.shape(), y.dtype()));
  const DTensor loss = ops::sum(y * pack(factors, Layout::replicated(y.mesh(), y.rank())));
  CHECK(unlike(y.full(), golden.at("y")) == "");
  CHECK(unlike(tape.gradient(loss, x).full(), golden.at("gradient")) == "");
}

const Json& cases() { return golden_part("keras_activations.json", "cases"); }

}  // namespace

TEST_CASE("activations and their gradients match Keras, also at kinks and for large inputs") {
  std::set<std::string> seen = {"threshold"};
  const Mesh one = create_mesh({{"x", 1}}), three = create_mesh({{"x", 3}});
  for (const Json& golden : cases()) {
    INFO(golden.at("name") << golden.at("arguments").dump() << golden.at("x").at("dtype")
                           << golden.at("x").at("shape").dump());
    const auto rank = static_cast<int64_t>(golden.at("x").at("shape").size());
    check(golden, Layout::replicated(one, rank));
    for (const Layout& layout : all_layouts(three, rank)) check(golden, layout);
    if (golden.at("arguments").empty()) seen.insert(golden.at("name"));
  }
  std::set<std::string> expected = {"threshold"};
  for (const std::string& name : activation_names()) expected.insert(name);
  CHECK(seen == expected);
  CHECK(seen.size() == 32);
}

TEST_CASE("activations of several operations have correct gradients in every layout") {
  const at::Tensor x = at::linspace(-4.1, 4.3, 24, at::kDouble).reshape({4, 6});
  const auto glu = [](const std::vector<DTensor>& in) { return activations::glu(in[0], 0); };
  CHECK(wrong_gradients({x}, glu) == "");
  const auto relu = [](const std::vector<DTensor>& in) {
    return activations::relu(in[0], 0.1, 3.0, 0.5);
  };
  CHECK(wrong_gradients({x}, relu) == "");
}

TEST_CASE("silu and piecewise linear functions have second derivatives") {
  const at::Tensor x = at::linspace(-4.1, 4.3, 12, at::kDouble);
  const auto slope = [](DTensor (*function)(const DTensor&)) {
    return [function](const std::vector<DTensor>& in) {
      GradientTape tape;
      tape.watch(in[0]);
      return tape.gradient(ops::square(function(in[0])), in[0]);
    };
  };
  CHECK(wrong_gradients({x}, slope(activations::silu)) == "");
  CHECK(wrong_gradients({x}, slope([](const DTensor& v) { return ops::leaky_relu(v); })) == "");
  CHECK(wrong_gradients({x}, slope(activations::relu6)) == "");
}

TEST_CASE("an activation names the input that it refuses") {
  CHECK_THROWS_WITH(ActivationHandle("threshold"),
                    Contains("\"threshold\"") && Contains("activations::threshold"));
  CHECK_THROWS_WITH(ActivationHandle("lrelu"), Contains("\"relu\""));
  CHECK_THROWS_WITH(activations::glu(ones({2, 3})), Contains("[glu]") && Contains("(2, 3)"));
  CHECK_THROWS_AS(activations::celu(ones({2}), 0), ConfigError);
  CHECK_THROWS_WITH(activations::gelu(ops::cast(ones({2}), at::kInt)), Contains("[gelu]"));
  CHECK_THROWS_AS(activations::sparsemax(ones({2}), 1), Error);
}

}  // namespace activations_test
