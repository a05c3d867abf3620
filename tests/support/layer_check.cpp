#include "tests/support/layer_check.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/sgd.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Tensors by their role: "output", "gradient of the input", "kernel after the step".
using Results = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<SampleInput> inputs_of(const LayerTest& test) {
  std::vector<SampleInput> inputs = {test.input};
  inputs.insert(inputs.end(), test.more_inputs.begin(), test.more_inputs.end());
  return inputs;
}

/// Returns the input shapes, with `batch` as the first extent unless it is 0.
Shapes shapes_of(const LayerTest& test, int64_t batch = 0) {
  Shapes shapes;
  for (const SampleInput& input : inputs_of(test)) {
    shapes.push_back(input.shape);
    if (batch != 0) shapes.back()[0] = batch;
  }
  return shapes;
}

/// Runs one step; the layouts are the inputs', then each weight's.
Results train(const LayerTest& test, const std::vector<Layout>& layouts) {
  const Mesh& mesh = layouts[0].mesh();
  const LayerHandle layer = test.make();
  layer->build(shapes_of(test));
  Inputs inputs;
  for (const SampleInput& input : inputs_of(test)) {
    const size_t i = inputs.size();
    inputs.push_back(make_value(random_values(input, 1 + 10 * i), layouts[i], 1));
  }
  size_t placed = inputs.size();
  for (Variable& weight : layer->weights()) weight.place({weight.shape(), layouts[placed++]});
  std::vector<Variable> trained = layer->trainable_weights();
  std::vector<DTensor> sources = inputs;
  for (const Variable& weight : trained) sources.push_back(weight.value());
  const at::Tensor target = random_values({test.output, at::kDouble}, 2);
  const auto random = std::make_shared<RandomStream>(3, 4);

  GradientTape tape;
  for (const DTensor& input : inputs) tape.watch(input);
  const DTensor y = layer(inputs, {.training = true, .random = random});
  CHECK(y.shape() == test.output);
  const auto rank = static_cast<int64_t>(test.output.size());
  const DTensor error = ops::cast(y, at::kDouble) - pack(target, Layout::replicated(mesh, rank));
  DTensor loss = ops::mean(ops::square(error));
  for (const DTensor& penalty : layer->losses()) loss = loss + ops::cast(penalty, at::kDouble);
  std::vector<DTensor> gradients = tape.gradient(loss, sources);
  Results results = {{"output", y.full()}, {"loss", loss.full()}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i].defined()) continue;
    CHECK(gradients[i].layout() == layouts[i]);
    results.emplace_back(str("gradient of input ", i), gradients[i].full());
  }
  gradients.erase(gradients.begin(), gradients.begin() + int64_t(inputs.size()));
  if (!trained.empty()) SGD(0.1)->apply(gradients, trained);
  for (const Variable& weight : layer->weights()) {
    results.emplace_back(weight.path() + " after the step", weight.value().full().clone());
  }
  return results;
}

std::string differs(const Results& actual, const Results& expected) {
  if (actual.size() != expected.size()) return "other results";
  std::string text;
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string wrong = difference(actual[i].second, expected[i].second, 1e-10, 1e-12);
    if (!wrong.empty()) text += expected[i].first + ": " + wrong + "; ";
  }
  return text;
}

/// Returns where errors exceed a fraction of a tensor's largest number.
std::string differs_coarsely(const Results& actual, const Results& expected, double part) {
  if (actual.size() != expected.size()) return "other results";
  std::string text;
  for (size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor exact = expected[i].second.to(at::kDouble);
    const double largest = exact.numel() == 0 ? 0 : exact.abs().max().item<double>();
    const std::string wrong =
        difference(actual[i].second.to(at::kDouble), exact, 0, part * (largest + 1e-3));
    if (!wrong.empty()) text += expected[i].first + ": " + wrong + "; ";
  }
  return text;
}

void check_build(const LayerTest& test) {
  const LayerHandle layer = test.make();
  CHECK_FALSE(layer->built());
  CHECK(layer->weights().empty());
  CHECK(layer->can_be_replayed());
  const Shapes unknown_batch = shapes_of(test, -1);
  layer->build(unknown_batch);
  CHECK(layer->built());
  std::vector<std::pair<std::string, Shape>> weights;
  const size_t prefix = layer->path().size() + 1;
  int64_t count = 0;
  for (const Variable& weight : layer->weights()) {
    CHECK(weight.path().rfind(layer->path() + "/", 0) == 0);
    CHECK(weight.dtype() == (at::isFloatingType(weight.dtype()) ? at::kDouble : at::kLong));
    CHECK_FALSE(weight.has_value());
    weights.emplace_back(weight.path().substr(prefix), weight.shape());
    count += numel(weight.shape());
  }
  CHECK(weights == test.weights);
  CHECK(layer->count_params() == count);
  CHECK(layer->output_shape(shapes_of(test)) == test.output);
  Shape output = layer->output_shape(unknown_batch);
  CHECK(output[0] == -1);
  output[0] = test.output[0];
  CHECK(output == test.output);
  layer->build(unknown_batch);
  CHECK(layer->weights().size() == test.weights.size());
}

void check_config(const LayerTest& test) {
  const DTypeScope double_precision("float64");
  const LayerHandle layer = test.make();
  Json expected = {{"name", layer->name()}, {"trainable", true}, {"dtype", "float64"}};
  if (test.config.is_object()) expected.update(test.config);
  CHECK(layer->config() == expected);
  CHECK(test.make()->config() == expected);
}

/// Checks that a layer rebuilt from another's configuration is equal, including its initial
/// weights.
void check_round_trip(const LayerTest& test) {
  const LayerHandle layer = test.make();
  for (const bool built : {false, true}) {
    if (built) layer->build(shapes_of(test));
    const Json written = {{"class_name", layer->class_name()}, {"config", layer->config()}};
    const Json read = parse_json(to_json_text(written), "layer.json");
    const LayerHandle again = layer_from_config(read, JsonPath("layer.json"));
    CHECK(again->class_name() == layer->class_name());
    CHECK(again->config() == layer->config());
    CHECK_FALSE(again->built());
    again->build(shapes_of(test));
    const LayerHandle original = test.make();
    original->build(shapes_of(test));
    REQUIRE(again->weights().size() == original->weights().size());
    for (size_t w = 0; w < original->weights().size(); ++w) {
      CHECK(again->weights()[w].path() == original->weights()[w].path());
      CHECK(difference(again->weights()[w].value().full(), original->weights()[w].value().full()) ==
            "");
    }
  }
}

void check_trainable(const LayerTest& test) {
  const LayerHandle layer = test.make();
  layer->build(shapes_of(test));
  layer->set_trainable(false);
  CHECK(layer->trainable_weights().empty());
  CHECK(layer->weights().size() == test.weights.size());
  CHECK(layer->config().at("trainable") == false);
}

/// Returns layouts for each weight and input; 64 random choices if there are many.
std::vector<std::vector<Layout>> layouts_on(const Mesh& mesh, const LayerTest& test, size_t limit) {
  std::vector<std::vector<Layout>> lists;
  for (const Shape& shape : shapes_of(test)) {
    lists.push_back(all_layouts(mesh, int64_t(shape.size())));
  }
  for (const auto& weight : test.weights) {
    lists.push_back(all_layouts(mesh, int64_t(weight.second.size())));
  }
  return choices(lists, limit, mesh.hash());
}

/// Checks that mixed precision equals float32 up to a few units in the last place: 2^-8 for
/// bfloat16, 2^-11 for float16.
void check_mixed_precision(const LayerTest& test) {
  Results expected;
  {
    const DTypeScope single_precision("float32");
    expected = train(test, layouts_on(virtual_mesh({1}), test, 1)[0]);
  }
  for (const auto& [policy, part] : {std::pair("mixed_bfloat16", 5e-2), {"mixed_float16", 8e-3}}) {
    const DTypeScope mixed(policy);
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2, 2}}) {
      for (const std::vector<Layout>& layouts : layouts_on(virtual_mesh(sizes), test, 3)) {
        CAPTURE(policy, short_name(layouts[0].mesh()), short_name(layouts));
        CHECK(differs_coarsely(train(test, layouts), expected, part) == "");
      }
    }
  }
}

}  // namespace

void run_golden_layer_test(const LayerTest& test) {
  const DTypeScope double_precision("float64");
  check_build(test);
  check_round_trip(test);
  check_trainable(test);
  const Results expected = train(test, layouts_on(virtual_mesh({1}), test, 64)[0]);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2}, {4}, {2, 2}}) {
    for (const std::vector<Layout>& layouts : layouts_on(virtual_mesh(sizes), test, 64)) {
      for (const BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
        CAPTURE(short_name(layouts[0].mesh()), short_name(layouts), to_string(policy));
        const BlockPolicyScope scope(policy);
        CHECK(differs(train(test, layouts), expected) == "");
      }
    }
  }
  check_mixed_precision(test);
}

void run_layer_test(const LayerTest& test) {
  check_config(test);
  run_golden_layer_test(test);
}

}  // namespace tessera::test
