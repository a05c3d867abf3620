#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/warnings.hpp"

namespace weight_decay_exclusions_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

std::vector<LayoutMap> layout_maps() {
  LayoutMap columns(create_mesh({{"batch", 2}, {"model", 2}}));
  columns["out/kernel"] = {unsharded, "model"};
  return {LayoutMap(create_mesh({{"batch", 1}})), LayoutMap(create_mesh({{"batch", 3}})), columns};
}

/// A model with weights of ones ("layer_norm/beta": zeros) that fits its data, so that a step only
/// decays weights.
Sequential model_with(const OptimizerHandle& optimizer, const LayoutMap& layouts) {
  const Sequential model(
      {Input({3}), LayerNormalization({.name = "layer_norm"}),
       Dense(2, {.kernel_initializer = "ones", .bias_initializer = "ones", .name = "out"})});
  model.compile({.optimizer = optimizer, .loss = "mse", .layouts = layouts});
  return model;
}

/// Returns the paths of the weights that one step left at 1; the others are 1 - 0.1 * 0.5.
std::vector<std::string> kept(const ModelHandle& model) {
  model.train_on_batch(at::zeros({5, 3}), at::ones({5, 2}));
  std::vector<std::string> paths;
  for (const Variable& weight : model.weights()) {
    if (weight.path() == "layer_norm/beta") continue;
    const at::Tensor value = weight.value().full(), ones = at::ones_like(value);
    const bool same = difference(value, ones) == "";
    if (same) paths.push_back(weight.path());
    CHECK(difference(value, same ? ones : ones * 0.95, 1e-6) == "");
  }
  return paths;
}

OptimizerHandle sgd_without(const WeightDecayExclusions& exclusions) {
  const SGD sgd(0.1, {.weight_decay = 0.5});
  sgd->exclude_from_weight_decay(exclusions);
  return sgd;
}

const std::vector<std::string> gamma = {"layer_norm/gamma"}, bias = {"out/bias"};

}  // namespace

TEST_CASE("weights are excluded from decay by name, by layer and by path") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"gamma", gamma},
      {"layer_norm", gamma},
      {"^bias", bias},
      {"out/bias$", bias},
      {"out", {"out/kernel", "out/bias"}},
      {"^out/k", {"out/kernel"}}};
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    for (const auto& [name, expected] : cases) {
      CAPTURE(name);
      const test::Warnings warnings;
      CHECK(kept(model_with(sgd_without({.var_names = {name}}), layouts)) == expected);
      CHECK(warnings.text() == "");
    }
  }
}

TEST_CASE("a name that matches no weight is warned of once") {
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const test::Warnings warnings;
    const Sequential model =
        model_with(sgd_without({.var_names = {"layer_nrom", "bias"}}), layouts);
    const std::string text =
        "Warning: SGD, exclude_from_weight_decay(): no weight's path matches \"layer_nrom\"; write "
        "\"layer_norm\"\n";
    CHECK(warnings.text() == text);
    CHECK(kept(model) == bias);
    CHECK(warnings.text() == text);
  }
  const test::Warnings warnings;
  const OptimizerHandle alone = sgd_without({.var_names = {"gamma"}});
  const Layout layout = Layout::replicated(default_mesh(), 1);
  const Variable w("w", pack(at::ones({2}), layout));
  for (int step = 0; step < 2; ++step) alone->apply({pack(at::ones({2}), layout)}, {w});
  CHECK_THAT(warnings.text(), Contains("\"gamma\"") && !Contains("\n\n"));
}

TEST_CASE("wrapping optimizers pass exclusions on") {
  const LossScaleOptimizer scaled(SGD(0.1, {.weight_decay = 0.5}));
  scaled->exclude_from_weight_decay({.var_names = {"layer_norm", "bias"}});
  CHECK(kept(model_with(scaled, layout_maps()[1])) ==
        std::vector<std::string>{"layer_norm/gamma", "out/bias"});
}

TEST_CASE("files keep exclusions from weight decay") {
  const test::TempFolder folder;
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const auto kept_after_loading = [&](const ModelHandle& model) {
      model.save(folder / "model.keras");
      return kept(load_model(folder / "model.keras", {.layouts = layouts}));
    };
    CHECK(kept_after_loading(model_with(sgd_without({.var_names = {"norm"}}), layouts)) == gamma);
    const Sequential model = model_with("sgd", layouts);
    const OptimizerHandle by_variable = sgd_without({.var_list = {model.weights().back()}});
    model.compile({.optimizer = by_variable, .loss = "mse", .layouts = layouts});
    CHECK(kept_after_loading(model) == bias);
    const OptimizerHandle inner = sgd_without({.var_names = {"norm"}});
    CHECK(kept_after_loading(model_with(LossScaleOptimizer(inner), layouts)) == gamma);
  }
  const Json plain = optimizer_to_config(SGD(0.1));
  CHECK_FALSE(plain.contains("exclude_from_weight_decay"));
  Json wrong = plain;
  wrong["exclude_from_weight_decay"] = "bias";
  CHECK_THROWS_WITH(optimizer_from_config(wrong), Contains("exclude_from_weight_decay"));
}

}  // namespace weight_decay_exclusions_test
