#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/layers/attention/multi_head_attention.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/op_names.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace multi_head_attention_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::error_line;

namespace {

/// Layouts that shard the heads over "model".
LayoutMap by_heads(const Mesh& mesh) {
  LayoutMap layouts(mesh);
  for (const char* name : {"query", "key", "value"}) {
    layouts[str("attention/", name, "/kernel")] = {unsharded, "model", unsharded};
    layouts[str("attention/", name, "/bias")] = {"model", unsharded};
  }
  layouts["attention/attention_output/kernel"] = {"model", unsharded, unsharded};
  return layouts;
}

/// Returns the output and gradients of a layer of 2 heads with fixed weights.
std::vector<at::Tensor> results(MultiHeadAttentionOptions options,
                                const std::vector<at::Tensor>& inputs) {
  options.dtype = "float64";
  const LayerHandle layer = MultiHeadAttention(2, 3, options);
  Inputs values;
  Shapes shapes;
  GradientTape tape;
  for (const at::Tensor& input : inputs) {
    values.push_back(pack(input, Layout::replicated(default_mesh(), input.dim())));
    shapes.push_back(values.back().shape());
    tape.watch(values.back());
  }
  layer->build(shapes);
  int64_t seed = 10;
  for (Variable weight : layer->weights()) {
    weight.assign(pack(test::random_values({weight.shape()}, ++seed),
                       Layout::replicated(default_mesh(), int64_t(weight.shape().size()))));
  }
  const DTensor y = layer->outputs(values)[0];
  std::vector<at::Tensor> list = {y.full().clone()};
  const Inputs sources(values.begin(), values.begin() + 2);
  for (const DTensor& gradient : tape.gradient(ops::sum(y * y), sources)) {
    list.push_back(gradient.full().clone());
  }
  return list;
}

}  // namespace

TEST_CASE("MultiHeadAttention matches Keras on any mesh") {
  test::check_layers(
      test::golden_part("keras_sequences.json", "MultiHeadAttention"), [](size_t row) {
        return test::other_than_keras("keras_sequences.json", "MultiHeadAttention", row);
      });
}

TEST_CASE("MultiHeadAttention under every layout") {
  test::run_golden_layer_test(
      {.make = [] { return MultiHeadAttention(2, 3, {.dropout = 0.2, .use_bias = false}); },
       .input = {{2, 3, 4}},
       .output = {2, 3, 4},
       .weights = {{"query/kernel", {4, 2, 3}},
                   {"key/kernel", {5, 2, 3}},
                   {"value/kernel", {5, 2, 3}},
                   {"attention_output/kernel", {2, 3, 4}}},
       .more_inputs = {{{2, 4, 5}}}});
}

TEST_CASE("heads sharded over a mesh dimension cost one all-reduce of the output") {
  const Mesh mesh = create_mesh({{"model", 2}}, virtual_cpus(2));
  const LayerHandle layer = MultiHeadAttention(4, 3, {.name = "attention"});
  const Shape shape = {2, 5, 6};
  layer->build({shape, shape});
  layer->place_weights(by_heads(mesh));
  const DTensor x =
      pack(test::random_values({shape}, 1).to(at::kFloat), Layout::replicated(mesh, 3));
  for (const Variable& weight : layer->weights()) weight.value();
  CommLog log;
  {
    const CommLogScope scope(log);
    layer(Inputs{x, x}).full();
  }
  REQUIRE(log.entries().size() == 1);
  CHECK(log.entries()[0].bytes == 2 * 5 * 6 * 4);
}

TEST_CASE("dropout of scores is the same on all meshes") {
  const Shape shape = {2, 5, 6};
  const at::Tensor x = test::random_values({shape}, 1).to(at::kFloat);
  const auto run = [&](int64_t devices, int64_t step) {
    const Mesh mesh = create_mesh({{"model", devices}}, virtual_cpus(devices));
    const LayerHandle layer = MultiHeadAttention(4, 3, {.dropout = 0.5, .name = "attention"});
    layer->build({shape, shape});
    layer->place_weights(by_heads(mesh));
    const DTensor value = pack(x, Layout::replicated(mesh, 3));
    const auto random = std::make_shared<RandomStream>(3, step);
    return layer(Inputs{value, value}, {.training = step > 0, .random = random}).full().clone();
  };
  CHECK(difference(run(2, 1), run(1, 1), 1e-5, 1e-6) == "");
  CHECK(difference(run(1, 1), run(1, 2), 1e-3) != "");
  CHECK(difference(run(1, 1), run(1, 0), 1e-3) != "");
}

TEST_CASE("no step attends to a later one under a causal mask") {
  const LayerHandle layer = MultiHeadAttention(2, 3, {.use_causal_mask = true});
  const at::Tensor x = test::random_values({{2, 5, 4}}, 1).to(at::kFloat);
  const auto call = [&](const at::Tensor& values) {
    const DTensor v = pack(values, Layout::replicated(default_mesh(), 3));
    return layer(Inputs{v, v}).full().clone();
  };
  const at::Tensor y = call(x);
  at::Tensor changed = x.clone();
  changed.select(1, 3).add_(1);
  CHECK(difference(call(changed).narrow(1, 0, 3), y.narrow(1, 0, 3), 1e-6, 1e-7) == "");
  CHECK(difference(call(changed).narrow(1, 3, 2), y.narrow(1, 3, 2), 1e-3) != "");
}

TEST_CASE("attention without scores is one operation and equals the composed one") {
  const at::Tensor x = test::random_values({{2, 3, 4, 5}}, 1),
                   y = test::random_values({{2, 6, 4, 5}}, 2);
  at::Tensor mask = test::random_values({{2, 3, 6}}, 3).gt(0.2);
  mask.diagonal(0, 1, 2).fill_(true);
  struct Case {
    MultiHeadAttentionOptions options;
    std::vector<at::Tensor> inputs;
  };
  const at::Tensor flat = x.select(2, 0), more = y.select(2, 0);
  const std::vector<Case> cases = {
      {{}, {flat, more}},
      {{.use_causal_mask = true}, {flat, more}},
      {{.value_dim = 2, .use_gate = true}, {flat, more}},
      {{}, {flat, more, more, mask}},
      {{.sliding_window = 2, .use_causal_mask = true}, {flat, more, more, mask}},
      {{.attention_axes = {1}, .use_causal_mask = true}, {x, y}},
      {{.attention_axes = {2}}, {x, x}},
      {{.dropout = 0.5, .attention_axes = {-2}}, {x, x}}};
  for (const Case& each : cases) {
    CAPTURE(&each - cases.data());
    const test::OpNames fused;
    const auto actual = results(each.options, each.inputs);
    CHECK(fused.has("attention"));
    CHECK_FALSE(fused.has("softmax"));
    MultiHeadAttentionOptions options = each.options;
    options.return_attention_scores = true;
    const test::OpNames composed;
    const auto expected = results(options, each.inputs);
    CHECK(composed.has("softmax"));
    CHECK_FALSE(composed.has("attention"));
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(difference(actual[i], expected[i], 1e-10, 1e-10) == "");
    }
  }
}

TEST_CASE("a causal mask alone needs no tensor; active dropout and two axes need the scores") {
  const at::Tensor x = test::random_values({{2, 3, 4}}, 1), wide = x.unsqueeze(1);
  const auto ran = [&](const MultiHeadAttentionOptions& options, const at::Tensor& input,
                       bool training) {
    const LayerHandle layer = MultiHeadAttention(2, 3, options);
    const DTensor v = pack(input.to(at::kFloat), Layout::replicated(default_mesh(), input.dim()));
    test::OpNames names;
    layer(Inputs{v, v}, {.training = training, .random = std::make_shared<RandomStream>(3, 1)});
    return names.has("attention") ? names.has("where") ? "masked" : "fused" : "composed";
  };
  CHECK(ran({.use_causal_mask = true}, x, true) == std::string("fused"));
  CHECK(ran({.dropout = 0.5, .use_causal_mask = true}, x, false) == std::string("fused"));
  CHECK(ran({.dropout = 0.5}, x, true) == std::string("composed"));
  CHECK(ran({}, wide, false) == std::string("composed"));
}

TEST_CASE("attention over sharded steps communicates no more than its scores need") {
  const Mesh mesh = create_mesh({{"steps", 2}}, virtual_cpus(2));
  const LayerHandle layer = MultiHeadAttention(2, 3);
  layer->build({{2, 8, 4}, {2, 6, 4}});
  layer->place_weights(LayoutMap(mesh));
  const DTensor x = pack(test::random_values({{2, 8, 4}}, 1).to(at::kFloat),
                         Layout({unsharded, "steps", unsharded}, mesh));
  const DTensor all =
      pack(test::random_values({{2, 6, 4}}, 2).to(at::kFloat), Layout::replicated(mesh, 3));
  layer(Inputs{x, all});
  CommLog log;
  const CommLogScope scope(log);
  const test::OpNames names;
  CHECK(layer(Inputs{x, all}).layout() == x.layout());
  CHECK(names.has("attention"));
  CHECK(log.entries().empty());
  CHECK_FALSE(names.has("exp"));
  layer(Inputs{all, x});
  CHECK(names.has("exp"));
}

TEST_CASE("sharded steps attend at once, causal and in a window, without materializing a mask") {
  const Mesh mesh = create_mesh({{"steps", 3}}, virtual_cpus(3));
  const at::Tensor x = test::random_values({{2, 8, 4}}, 1).to(at::kFloat);
  const LayerHandle layer =
      MultiHeadAttention(2, 3, {.sliding_window = 3, .use_causal_mask = true});
  layer->build({{2, 8, 4}, {2, 8, 4}});
  const DTensor replicated = pack(x, Layout::replicated(default_mesh(), 3));
  const at::Tensor expected = layer(Inputs{replicated, replicated}).full().clone();
  layer->place_weights(LayoutMap(mesh));
  const DTensor apart = pack(x, Layout({unsharded, "steps", unsharded}, mesh));
  const test::OpNames names;
  const DTensor y = layer(Inputs{apart, apart});
  CHECK(y.layout() == apart.layout());
  CHECK(names.has("ring_attention"));
  CHECK_FALSE(names.has("logical_and"));
  CHECK(difference(y.full(), expected, 1e-5, 1e-6) == "");
}

TEST_CASE("attention's weights have Keras' paths and shapes") {
  const LayerHandle layer = MultiHeadAttention(2, 3, {.value_dim = 5, .name = "attention"});
  layer->build({{-1, 4, 7}, {-1, 6, 8}});
  std::vector<std::pair<std::string, Shape>> weights;
  for (const Variable& weight : layer->weights()) {
    weights.emplace_back(weight.path(), weight.shape());
  }
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"attention/query/kernel", {7, 2, 3}},
      {"attention/query/bias", {2, 3}},
      {"attention/key/kernel", {8, 2, 3}},
      {"attention/key/bias", {2, 3}},
      {"attention/value/kernel", {8, 2, 5}},
      {"attention/value/bias", {2, 5}},
      {"attention/attention_output/kernel", {2, 5, 7}},
      {"attention/attention_output/bias", {7}}};
  CHECK(weights == expected);
  // Glorot's uniform distribution for fans of 7 and 6.
  const at::Tensor kernel = layer->weights()[0].value().full();
  CHECK(kernel.abs().max().item<double>() <= std::sqrt(6.0 / 13));
  CHECK(kernel.abs().max().item<double>() > 0.8 * std::sqrt(6.0 / 13));
}

TEST_CASE("MultiHeadAttention refuses invalid arguments in one line") {
  CHECK_THAT(error_line([] { MultiHeadAttention(0, 3, {.name = "a"}); }),
             Contains("[MultiHeadAttention a]") && Contains("num_heads"));
  CHECK_THAT(error_line([] { MultiHeadAttention(2, 3, {.dropout = 1}); }), Contains("dropout"));
  const auto call = [](const std::vector<Shape>& shapes) {
    return error_line([&] {
      Inputs inputs;
      for (const Shape& shape : shapes) inputs.push_back(ones(shape));
      LayerHandle(MultiHeadAttention(2, 3, {.name = "a"}))(inputs);
    });
  };
  CHECK_THAT(call({{2, 3, 4}}), Contains("[MultiHeadAttention a]") && Contains("1 inputs"));
  CHECK_THAT(call({{2, 3, 4}, {2, 5, 4}, {2, 4, 4}}), Contains("(2, 5, 4)"));
  CHECK_THAT(call({{2, 3}, {2, 5}}), Contains("(2, 3)"));
  CHECK_THAT(error_line([] { MultiHeadAttention(1 << 20, 1 << 20); }), Contains("smaller"));
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {3}, {1, 1}, {4}}) {
    CHECK_THAT(error_line([&] {
                 LayerHandle(MultiHeadAttention(2, 3, {.attention_axes = axes}))(
                     Inputs{ones({2, 3, 4, 2}), ones({2, 3, 4, 2})});
               }),
               Contains("[MultiHeadAttention"));
  }
}

}  // namespace multi_head_attention_test
