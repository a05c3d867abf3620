#include "tests/support/layer_check.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/sgd.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {
namespace {

class DTypeScope {
 public:
  explicit DTypeScope(const std::string& name) : former_(default_dtype_policy()) {
    set_default_dtype_policy(dtype_policy(name));
  }
  ~DTypeScope() { set_default_dtype_policy(former_); }
  DTypeScope(const DTypeScope&) = delete;
  DTypeScope& operator=(const DTypeScope&) = delete;

 private:
  DTypePolicy former_;
};

/// Tensors by what they are: "output", "gradient of the input", "kernel after the step".
using Results = std::vector<std::pair<std::string, at::Tensor>>;

/// One step; the layouts are the input's, then each weight's.
Results train(const LayerTest& test, const std::vector<Layout>& layouts) {
  const Mesh& mesh = layouts[0].mesh();
  const LayerHandle layer = test.make();
  layer->build({test.input.shape});
  std::vector<Variable> weights = layer->weights();
  std::vector<DTensor> sources = {make_value(random_values(test.input, 1), layouts[0], 1)};
  for (size_t w = 0; w < weights.size(); ++w) {
    weights[w].place({weights[w].shape(), layouts[w + 1]});
    sources.push_back(weights[w].value());
  }
  const at::Tensor target = random_values({test.output, at::kDouble}, 2);
  const auto random = std::make_shared<RandomStream>(3, 4);

  GradientTape tape;
  tape.watch(sources[0]);
  const DTensor y = layer(sources[0], {.training = true, .random = random});
  CHECK(y.shape() == test.output);
  const auto rank = static_cast<int64_t>(test.output.size());
  const DTensor error = y - pack(target, Layout::replicated(mesh, rank));
  std::vector<DTensor> gradients = tape.gradient(ops::mean(ops::square(error)), sources);
  Results results = {{"output", y.full()}};
  if (gradients[0].defined()) {
    CHECK(gradients[0].layout() == layouts[0]);
    results.emplace_back("gradient of the input", gradients[0].full());
  }
  gradients.erase(gradients.begin());
  if (!weights.empty()) SGD(0.1)->apply(gradients, weights);
  for (const Variable& weight : weights) {
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

void check_build(const LayerTest& test) {
  const LayerHandle layer = test.make();
  CHECK_FALSE(layer->built());
  CHECK(layer->weights().empty());
  Shape unknown_batch = test.input.shape;
  unknown_batch[0] = -1;
  layer->build({unknown_batch});
  CHECK(layer->built());
  std::vector<std::pair<std::string, Shape>> weights;
  const size_t prefix = layer->path().size() + 1;
  int64_t count = 0;
  for (const Variable& weight : layer->weights()) {
    CHECK(weight.path().rfind(layer->path() + "/", 0) == 0);
    CHECK(weight.dtype() == at::kDouble);
    CHECK_FALSE(weight.has_value());
    weights.emplace_back(weight.path().substr(prefix), weight.shape());
    count += numel(weight.shape());
  }
  CHECK(weights == test.weights);
  CHECK(layer->count_params() == count);
  CHECK(layer->output_shape({test.input.shape}) == test.output);
  Shape output = layer->output_shape({unknown_batch});
  CHECK(output[0] == -1);
  output[0] = test.output[0];
  CHECK(output == test.output);
  layer->build({unknown_batch});
  CHECK(layer->weights().size() == test.weights.size());
}

void check_config(const LayerTest& test) {
  const LayerHandle layer = test.make();
  Json expected = {{"name", layer->name()}, {"trainable", true}, {"dtype", "float64"}};
  if (test.config.is_object()) expected.update(test.config);
  CHECK(layer->config() == expected);
  CHECK(test.make()->config() == expected);
}

void check_trainable(const LayerTest& test) {
  const LayerHandle layer = test.make();
  layer->build({test.input.shape});
  layer->set_trainable(false);
  CHECK(layer->trainable_weights().empty());
  CHECK(layer->weights().size() == test.weights.size());
  CHECK(layer->config().at("trainable") == false);
}

}  // namespace

void run_layer_test(const LayerTest& test) {
  const DTypeScope double_precision("float64");
  check_build(test);
  check_config(test);
  check_trainable(test);
  const auto ranks = [&] {
    std::vector<int64_t> list = {static_cast<int64_t>(test.input.shape.size())};
    for (const auto& weight : test.weights) list.push_back(int64_t(weight.second.size()));
    return list;
  }();
  const auto layouts_on = [&](const Mesh& mesh) {
    std::vector<std::vector<Layout>> lists;
    for (int64_t rank : ranks) lists.push_back(all_layouts(mesh, rank));
    return choices(lists, 64, mesh.hash());
  };
  const Results expected = train(test, layouts_on(virtual_mesh({1}))[0]);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2}, {4}, {2, 2}}) {
    for (const std::vector<Layout>& layouts : layouts_on(virtual_mesh(sizes))) {
      for (const BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
        CAPTURE(short_name(layouts[0].mesh()), short_name(layouts), to_string(policy));
        const BlockPolicyScope scope(policy);
        CHECK(differs(train(test, layouts), expected) == "");
      }
    }
  }
}

}  // namespace tessera::test
