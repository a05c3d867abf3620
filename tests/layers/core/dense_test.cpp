#include <tessera/layers/core/dense.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/nn/initializers/constraints.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/nn/initializers/regularizers.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace dense_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

Json named(const std::string& name, const Json& config = Json::object()) {
  return {{"class_name", name}, {"config", config}};
}

Json config_of(int64_t units, const std::string& activation, bool use_bias) {
  return {{"units", units},
          {"activation", activation},
          {"use_bias", use_bias},
          {"kernel_initializer", named("GlorotUniform", {{"seed", nullptr}})},
          {"bias_initializer", named("Zeros")},
          {"kernel_regularizer", nullptr},
          {"bias_regularizer", nullptr},
          {"activity_regularizer", nullptr},
          {"kernel_constraint", nullptr},
          {"bias_constraint", nullptr}};
}

std::string layout_of(const LayerHandle& layer, size_t weight) {
  return layer->weights()[weight].layout().describe();
}

}  // namespace

TEST_CASE("Dense under every layout") {
  test::run_layer_test({.make = [] { return Dense(5, {.activation = "tanh"}); },
                        .input = {{6, 7}},
                        .output = {6, 5},
                        .weights = {{"kernel", {7, 5}}, {"bias", {5}}},
                        .config = config_of(5, "tanh", true)});
}

TEST_CASE("Dense on more axes, without a bias") {
  test::run_layer_test({.make = [] { return Dense(3, {.use_bias = false}); },
                        .input = {{3, 2, 5}},
                        .output = {3, 2, 3},
                        .weights = {{"kernel", {5, 3}}},
                        .config = config_of(3, "linear", false)});
}

TEST_CASE("Dense with regularizers and constraints") {
  const auto make = [] {
    return Dense(3, {.activation = "tanh",
                     .kernel_initializer = HeNormal({.seed = 1}),
                     .bias_initializer = RandomNormal({.seed = 2}),
                     .kernel_regularizer = L1L2({.l1 = 0.1, .l2 = 0.2}),
                     .bias_regularizer = "l2",
                     .activity_regularizer = L1(0.3),
                     .kernel_constraint = MaxNorm({.max_value = 0.7}),
                     .bias_constraint = "non_neg"});
  };
  Json config = config_of(3, "tanh", true);
  config["kernel_initializer"] = named("HeNormal", {{"seed", 1}});
  config["bias_initializer"] =
      named("RandomNormal", {{"mean", 0.0}, {"stddev", 0.05}, {"seed", 2}});
  config["kernel_regularizer"] = named("L1L2", {{"l1", 0.1}, {"l2", 0.2}});
  config["bias_regularizer"] = named("L2", {{"l2", 0.01}});
  config["activity_regularizer"] = named("L1", {{"l1", 0.3}});
  config["kernel_constraint"] = named("MaxNorm", {{"max_value", 0.7}, {"axis", 0}});
  config["bias_constraint"] = named("NonNeg");
  test::run_layer_test({.make = make,
                        .input = {{6, 5}},
                        .output = {6, 3},
                        .weights = {{"kernel", {5, 3}}, {"bias", {3}}},
                        .config = config});
}

TEST_CASE("Dense adds penalties and applies constraints") {
  const LayerHandle layer = Dense(2, {.use_bias = true,
                                      .kernel_initializer = Constant(0.5),
                                      .bias_initializer = Constant(-1.0),
                                      .kernel_regularizer = L2(0.1),
                                      .bias_regularizer = L1(0.2),
                                      .activity_regularizer = L1(0.3),
                                      .kernel_constraint = UnitNorm(),
                                      .bias_constraint = NonNeg()});
  layer(ones({5, 3}));
  const auto losses = layer->losses();
  REQUIRE(losses.size() == 3);
  // Every output is 3 / 2 - 1; the activity penalty is divided by the rows.
  CHECK(losses[0].item() == Approx(0.3 * 10 * 0.5 / 5));
  CHECK(losses[1].item() == Approx(0.1 * 6 * 0.25));
  CHECK(losses[2].item() == Approx(0.2 * 2 * 1));
  const auto weights = layer->weights();
  const DTensor kernel = (*weights[0].spec().constraint)(weights[0].value());
  CHECK(difference(kernel.full(), at::full({3, 2}, 0.57735), 1e-5) == "");
  CHECK(difference((*weights[1].spec().constraint)(weights[1].value()).full(), at::zeros(2)) == "");
}

TEST_CASE("Dense is activation(x kernel + bias)") {
  const DenseOptions options{.activation = "relu",
                             .kernel_initializer = RandomNormal({.seed = 1}),
                             .bias_initializer = RandomNormal({.seed = 2})};
  const LayerHandle layer = Dense(4, options);
  const at::Tensor x = at::rand({6, 3}) - 0.5;
  const DTensor y = layer(pack(x, Layout::replicated(default_mesh(), 2)));
  const at::Tensor kernel = layer->weights()[0].value().full();
  const at::Tensor bias = layer->weights()[1].value().full();
  CHECK(bias.abs().min().item<float>() > 0);
  CHECK(difference(y.full(), (x.mm(kernel) + bias).relu(), 1e-6, 1e-7) == "");
}

TEST_CASE("Dense takes every option by name") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const LayerHandle layer = Dense(4, {.activation = "relu",
                                      .use_bias = true,
                                      .kernel_initializer = "he_normal",
                                      .bias_initializer = Constant(0.5),
                                      .kernel_regularizer = "l2",
                                      .bias_regularizer = "l1",
                                      .activity_regularizer = "l1_l2",
                                      .kernel_constraint = "max_norm",
                                      .bias_constraint = "non_neg",
                                      .kernel_layout = {unsharded, "model"},
                                      .bias_layout = {unsharded},
                                      .name = "hidden",
                                      .dtype = "float64",
                                      .trainable = false});
  layer->build({{-1, 3}});
  layer->place_weights(LayoutMap(mesh));
  CHECK(layer->name() == "hidden");
  CHECK(layer->weights()[0].path() == "hidden/kernel");
  CHECK(layer->trainable_weights().empty());
  CHECK(layout_of(layer, 0) == "(unsharded, model)");
  CHECK(layout_of(layer, 1) == "(unsharded)");
  CHECK(difference(layer->weights()[1].value().full(), at::full({4}, 0.5, at::kDouble)) == "");
  const Json config = layer->config();
  CHECK(config.at("kernel_initializer").at("class_name") == "HeNormal");
  CHECK(config.at("bias_initializer").at("config").at("value") == 0.5);
  CHECK(config.at("dtype") == "float64");
  CHECK(config.at("kernel_regularizer").at("class_name") == "L2");
  CHECK(config.at("bias_regularizer").at("class_name") == "L1");
  CHECK(config.at("activity_regularizer").at("class_name") == "L1L2");
  CHECK(config.at("kernel_constraint").at("class_name") == "MaxNorm");
  CHECK(config.at("bias_constraint").at("class_name") == "NonNeg");
}

TEST_CASE("a weight's layout comes from the argument, then the rule, then the kernel's layout") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const auto placed = [&](const DenseOptions& options, const LayoutMap& layouts) {
    const LayerHandle layer = Dense(4, options);
    layer->build({{-1, 3}});
    layer->place_weights(layouts);
    return layout_of(layer, 0) + layout_of(layer, 1);
  };
  LayoutMap layouts(mesh);
  CHECK(placed({}, layouts) == "(unsharded, unsharded)(unsharded)");
  layouts["dense/kernel"] = {unsharded, "model"};
  CHECK(placed({}, layouts) == "(unsharded, model)(model)");
  CHECK(placed({.kernel_layout = {"batch", unsharded}}, layouts) ==
        "(batch, unsharded)(unsharded)");
  CHECK(placed({.kernel_layout = {unsharded, "batch"}}, layouts) == "(unsharded, batch)(batch)");
  CHECK(placed({.bias_layout = {"batch"}}, layouts) == "(unsharded, model)(batch)");
  layouts["dense/bias"] = {unsharded};
  CHECK(placed({}, layouts) == "(unsharded, model)(unsharded)");
  CHECK_THROWS_WITH(placed({.kernel_layout = {"model"}}, layouts),
                    Contains("[dense/kernel]") && Contains("2 axes") && Contains("(model)"));
  CHECK_THROWS_WITH(placed({.kernel_layout = {unsharded, "modle"}}, layouts),
                    Contains("modle") && Contains("batch=2, model=2"));
}

TEST_CASE("Dense refuses invalid options in one line that names them") {
  const auto text = [](const std::function<void()>& function) -> std::string {
    try {
      function();
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(text([] { Dense(0, {.name = "hidden"}); }),
             Contains("[Dense hidden]") && Contains("Received: 0"));
  CHECK_THAT(text([] { Dense(-3); }), Contains("Received: -3"));
  CHECK_THAT(text([] { Dense(2, {.activation = "reluu"}); }),
             Contains("reluu") && Contains("\"relu\""));
  CHECK_THAT(text([] { Dense(2, {.kernel_initializer = "glorot"}); }), Contains("\"glorot\""));
  CHECK_THAT(text([] { Dense(2, {.name = "a/b"}); }), Contains("a/b"));
  CHECK_THAT(text([] { Dense(2, {.dtype = "float33"}); }), Contains("float33"));
  const auto build = [&](const Shapes& inputs) {
    return text([&] { Dense(2, {.name = "hidden"})->build(inputs); });
  };
  CHECK_THAT(build({{4}}), Contains("[Dense hidden]") && Contains("Received: (4,)"));
  CHECK_THAT(build({{4, -1}}), Contains("[Dense hidden]") && Contains("Received: (4, -1)"));
  CHECK_THAT(build({{4, 3}, {4, 3}}), Contains("[Dense hidden]") && Contains("2 inputs"));
  CHECK_THAT(build({}), Contains("[Dense hidden]") && Contains("0 inputs"));
  const LayerHandle built = Dense(2, {.name = "hidden"});
  built->build({{-1, 3}});
  const DTensor wide = zeros({4, 5});
  CHECK_THAT(text([&] { built(wide); }),
             Contains("[Dense hidden]") && Contains("3 features") && Contains("(4, 5)"));
  CHECK_THAT(text([&] { built(DTensor()); }), Contains("[Dense hidden]"));
}

}  // namespace dense_test
