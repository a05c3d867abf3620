#include <tessera/layers/normalization/batch_normalization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/nn/initializers/regularizers.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace batch_normalization_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

Json config_of(int64_t axis, bool center, bool scale, double epsilon) {
  const auto made = [](const InitializerHandle& object) { return serialized(object); };
  return {{"axis", axis},
          {"momentum", 0.99},
          {"epsilon", epsilon},
          {"center", center},
          {"scale", scale},
          {"beta_initializer", made("zeros")},
          {"gamma_initializer", made("ones")},
          {"moving_mean_initializer", made("zeros")},
          {"moving_variance_initializer", made("ones")},
          {"beta_regularizer", nullptr},
          {"gamma_regularizer", nullptr},
          {"beta_constraint", nullptr},
          {"gamma_constraint", nullptr},
          {"renorm", false},
          {"renorm_clipping", nullptr},
          {"renorm_momentum", 0.99},
          {"synchronized", false}};
}

DTensor replicated(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

at::Tensor value(const LayerHandle& layer, size_t weight) {
  return layer->weights()[weight].value().full().clone();
}

/// Returns the communication of a training step of the layer on x [16, 8] in these layouts:
/// forward, backward.
std::pair<CommLog, CommLog> all_reduce_status(const BatchNormalization& layer,
                                              const LayoutMap& layouts, const LayoutSpec& x_layout,
                                              bool planned = false) {
  std::optional<AbstractScope> plans_only;
  if (planned) plans_only.emplace(layouts.mesh());
  layer->build({{-1, 8}});
  layer->place_weights(layouts);
  std::vector<DTensor> sources;
  for (const Variable& weight : layer->weights()) weight.value();
  for (const Variable& weight : layer->trainable_weights()) sources.push_back(weight.value());
  const Layout layout = abstract_layout(Layout(x_layout, layouts.mesh()));
  const DTensor x = call_with_layout([] { return filled({16, 8}, 0.5); }, layout);
  std::pair<CommLog, CommLog> logs;
  GradientTape tape;
  tape.watch(x);
  sources.push_back(x);
  const DTensor y = [&] {
    const CommLogScope scope(logs.first);
    return layer(x, {.training = true});
  }();
  const DTensor loss = ops::sum(ops::square(y));
  const CommLogScope scope(logs.second);
  tape.gradient(loss, sources);
  return logs;
}

/// Returns the bytes of all entries, in order.
std::vector<int64_t> bytes(const CommLog& log) {
  std::vector<int64_t> list;
  for (const CommEntry& entry : log.entries()) list.push_back(entry.bytes);
  return list;
}

Mesh mesh_of(const std::string& dims) { return create_mesh(parse_mesh_dims(dims)); }

}  // namespace

TEST_CASE("BatchNormalization under every layout") {
  test::run_layer_test(
      {.make = [] { return BatchNormalization(); },
       .input = {{5, 4}},
       .output = {5, 4},
       .weights = {{"gamma", {4}}, {"beta", {4}}, {"moving_mean", {4}}, {"moving_variance", {4}}},
       .config = config_of(-1, true, true, 1e-3)});
  const auto plain = [] {
    return BatchNormalization({.epsilon = 1e-5, .center = false, .scale = false});
  };
  test::run_layer_test({.make = plain,
                        .input = {{3, 4}},
                        .output = {3, 4},
                        .weights = {{"moving_mean", {4}}, {"moving_variance", {4}}},
                        .config = config_of(-1, false, false, 1e-5)});
  test::run_layer_test(
      {.make = [] { return BatchNormalization({.axis = 1}); },
       .input = {{2, 3, 2, 2}},
       .output = {2, 3, 2, 2},
       .weights = {{"gamma", {3}}, {"beta", {3}}, {"moving_mean", {3}}, {"moving_variance", {3}}},
       .config = config_of(1, true, true, 1e-3)});
}

TEST_CASE("BatchNormalization with renorm under every layout") {
  Json config = config_of(-1, true, true, 1e-3);
  config["renorm"] = true;
  config["renorm_clipping"] = {{"rmax", 1.5}, {"dmax", 0.5}};
  test::run_layer_test({.make =
                            [] {
                              return BatchNormalization(
                                  {.renorm = true, .renorm_clipping = {.rmax = 1.5, .dmax = 0.5}});
                            },
                        .input = {{3, 4}},
                        .output = {3, 4},
                        .weights = {{"gamma", {4}},
                                    {"beta", {4}},
                                    {"moving_mean", {4}},
                                    {"moving_variance", {4}},
                                    {"moving_stddev", {4}},
                                    {"renorm_mean", {4}},
                                    {"renorm_stddev", {4}}},
                        .config = config});
}

TEST_CASE("BatchNormalization computes moments of deviations: a large mean costs no precision") {
  const at::Tensor x = at::randn({4096, 3}) + 5000;
  const BatchNormalization layer({.momentum = 0, .epsilon = 0});
  const at::Tensor y = layer(replicated(x), {.training = true}).full();
  CHECK(difference(y.var(0, false), at::ones(3), 1e-3) == "");
  CHECK(difference(value(layer, 3).to(at::kDouble), x.to(at::kDouble).var(0, false), 1e-3) == "");
}

TEST_CASE("BatchNormalization computes in float32 under a float16 or bfloat16 policy") {
  const at::Tensor x = (at::randn({512, 3}) + 200).to(at::kHalf);
  const BatchNormalization layer({.momentum = 0, .dtype = "mixed_float16"});
  const DTensor y = layer(replicated(x), {.training = true});
  CHECK(y.dtype() == at::kHalf);
  CHECK(layer->weights()[2].dtype() == at::kFloat);
  const at::Tensor wide = x.to(at::kFloat);
  CHECK(difference(value(layer, 2), wide.mean(0), 1e-5) == "");
  CHECK(difference(value(layer, 3), wide.var(0, false), 1e-4) == "");
  CHECK(at::isfinite(y.full()).all().item<bool>());
}

TEST_CASE("BatchNormalization leaves its statistics unchanged outside training") {
  const BatchNormalization layer({.momentum = 0.5});
  const DTensor x = replicated(at::rand({6, 3}) + 1);
  layer(x, {.training = true});
  const at::Tensor mean = value(layer, 2), variance = value(layer, 3);
  const auto check_same = [&] {
    CHECK(at::equal(value(layer, 2), mean));
    CHECK(at::equal(value(layer, 3), variance));
  };
  const at::Tensor expected = (x.full() - mean) / (variance + 1e-3).sqrt();
  CHECK(difference(layer(x).full(), expected, 1e-5, 1e-6) == "");
  check_same();
  // A batch without rows has no moments.
  CHECK(layer(replicated(at::zeros({0, 3})), {.training = true}).shape() == Shape{0, 3});
  check_same();
  layer->set_trainable(false);
  CHECK(difference(layer(x, {.training = true}).full(), expected, 1e-5, 1e-6) == "");
  check_same();
  layer->set_trainable(true);
  CHECK(layer->trainable_weights().size() == 2);
  layer(x, {.training = true});
  CHECK_FALSE(at::equal(value(layer, 2), mean));
}

TEST_CASE("planning BatchNormalization changes no statistics") {
  const BatchNormalization layer;
  layer(replicated(at::rand({6, 3})), {.training = true});
  const at::Tensor mean = value(layer, 2);
  {
    const AbstractScope plans_only(test::virtual_mesh({2, 2}));
    CHECK(layer(filled({6, 3}, 0), {.training = true}).shape() == Shape{6, 3});
  }
  CHECK(at::equal(value(layer, 2), mean));
}

TEST_CASE(
    "BatchNormalization all-reduces once in each pass: both moments of 8 channels in float64") {
  const LayoutMap data(mesh_of("batch=8"));
  const BatchNormalization plain({.center = false, .scale = false});
  const auto [forward, backward] = all_reduce_status(plain, data, {"batch", unsharded});
  CHECK(forward.count(CommOp::all_reduce, "batch") == 1);
  CHECK(backward.count(CommOp::all_reduce, "batch") == 1);
  CHECK(bytes(forward) == std::vector<int64_t>{128});
  CHECK(bytes(backward) == std::vector<int64_t>{128});

  const BatchNormalization renorm({.renorm = true});
  const auto renormed = all_reduce_status(renorm, data, {"batch", unsharded});
  CHECK(bytes(renormed.first) == std::vector<int64_t>{32, 32});
  // beta's gradient, which gamma's includes, is already all-reduced here.
  CHECK(bytes(renormed.second) == std::vector<int64_t>{32, 32, 32});

  // The gradients of gamma and beta follow from the sums that x's needs.
  LayoutMap model(mesh_of("batch=4,model=2"));
  model["bn/gamma"] = {"model"};
  const BatchNormalization full({.name = "bn"});
  const auto logs = all_reduce_status(full, model, {"batch", "model"});
  CHECK(bytes(logs.first) == std::vector<int64_t>{64});
  CHECK(bytes(logs.second) == std::vector<int64_t>{64});
  CHECK(logs.first.count(CommOp::all_reduce, "batch") == 1);
  CHECK(logs.second.count(CommOp::all_reduce, "batch") == 1);
}

TEST_CASE("BatchNormalization's plan shows the cost of statistics in another layout") {
  LayoutMap layouts(mesh_of("batch=4,model=2"));
  for (const std::string where : {"none", "model", "batch"}) {
    CAPTURE(where);
    LayoutMap map(layouts.mesh());
    map["bn/moving_.*"] = {where == "none" ? AxisSpec(unsharded) : AxisSpec(where)};
    const auto step = [&](bool planned) {
      const BatchNormalization layer({.name = "bn"});
      return all_reduce_status(layer, map, {"batch", "model"}, planned);
    };
    const auto [forward, backward] = step(false);
    const auto [planned_forward, planned_backward] = step(true);
    CHECK(forward.to_string() == planned_forward.to_string());
    CHECK(backward.to_string() == planned_backward.to_string());
    CHECK((forward.entries().size() > 2) == (where != "model"));
  }
}

TEST_CASE("BatchNormalization's weights are placed by rule, by option, else like gamma or beta") {
  const Mesh mesh = mesh_of("batch=2,model=2");
  const Layout cut({"model"}, mesh), replicated_vector = Layout::replicated(mesh, 1);
  const auto layouts_of = [&](const BatchNormalizationOptions& options, const LayoutMap& map) {
    const BatchNormalization layer(options);
    layer->build({{-1, 8}});
    layer->place_weights(map);
    std::vector<Layout> list;
    for (const Variable& weight : layer->weights()) list.push_back(weight.layout());
    return list;
  };
  using List = std::vector<Layout>;
  const LayoutMap none(mesh);
  CHECK(layouts_of({}, none) == List(4, replicated_vector));
  LayoutMap gamma(mesh);
  gamma["bn/gamma"] = {"model"};
  CHECK(layouts_of({.name = "bn"}, gamma) == List(4, cut));
  gamma["bn/moving_mean"] = {unsharded};
  CHECK(layouts_of({.name = "bn"}, gamma) == List{cut, cut, replicated_vector, cut});
  LayoutMap beta(mesh);
  beta["bn/beta"] = {"model"};
  CHECK(layouts_of({.scale = false, .name = "bn"}, beta) == List(3, cut));
  CHECK(layouts_of({.name = "bn"}, beta) ==
        List{replicated_vector, cut, replicated_vector, replicated_vector});
  const LayoutSpec model = {"model"};
  CHECK(layouts_of({.center = false, .scale = false, .moving_mean_layout = model}, none) ==
        List{cut, replicated_vector});
  CHECK(layouts_of(
            {.beta_layout = model, .gamma_layout = model, .moving_variance_layout = {unsharded}},
            none) == List{cut, cut, cut, replicated_vector});
}

TEST_CASE("BatchNormalization takes every option by name and refuses invalid ones") {
  const BatchNormalization layer({.axis = 1,
                                  .momentum = 0.9,
                                  .epsilon = 1e-5,
                                  .center = false,
                                  .scale = true,
                                  .beta_initializer = Constant(0.5),
                                  .gamma_initializer = "zeros",
                                  .moving_mean_initializer = "ones",
                                  .moving_variance_initializer = Constant(2),
                                  .beta_regularizer = "l1",
                                  .gamma_regularizer = L2(0.5),
                                  .beta_constraint = "non_neg",
                                  .gamma_constraint = "unit_norm",
                                  .renorm = true,
                                  .renorm_clipping = {.rmin = 0.5, .rmax = 2, .dmax = 1},
                                  .renorm_momentum = 0.9,
                                  .synchronized = true,
                                  .beta_layout = {},
                                  .gamma_layout = {},
                                  .moving_mean_layout = {},
                                  .moving_variance_layout = {},
                                  .name = "n",
                                  .dtype = "float64",
                                  .trainable = false});
  CHECK(layer->config().at("synchronized") == true);
  CHECK(layer->config().at("gamma_constraint").at("class_name") == "UnitNorm");
  CHECK_THROWS_WITH(BatchNormalization({.axis = 2})->build({{4, 3}}), Contains("axis"));
  CHECK_THROWS_WITH(BatchNormalization()->build({{4, -1}}), Contains("known extent"));
  CHECK_THROWS_WITH(layer(Inputs{}), Contains("one input"));
  layer->build({{-1, 3}});
  CHECK_THROWS_WITH(layer(replicated(at::zeros({4, 2}))),
                    Contains("3 indices") && Contains("(4, 2)"));
  CHECK_THROWS_WITH(layer(replicated(at::zeros({4, 3, 2}))), Contains("2 axes"));
  CHECK_THROWS_WITH(BatchNormalization({.renorm_clipping = {.rmin = 2, .rmax = 1}, .name = "n"}),
                    Contains("[BatchNormalization n]") && Contains("rmin 2, rmax 1, dmax none"));
  CHECK_THROWS_WITH(BatchNormalization({.renorm_clipping = {.dmax = -1}}), Contains("dmax -1"));
  const Json other = {{"class_name", "BatchNormalization"},
                      {"config", {{"renorm", true}, {"renorm_clipping", {{"rmaxx", 1.0}}}}}};
  CHECK_THROWS_WITH(layer_from_config(other, JsonPath("file")), Contains("rmaxx"));
}

}  // namespace batch_normalization_test
