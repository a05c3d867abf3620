#include <tessera/tessera.hpp>

#include "tests/training/recorded.hpp"

namespace recorded_optimizers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Every standalone optimizer, with a schedule, clipping, decay and moving averages.
std::vector<std::function<OptimizerHandle()>> all_optimizers() {
  std::vector<std::function<OptimizerHandle()>> all;
  for (const std::string& name : optimizer_names()) {
    all.push_back([name] {
      Json made = optimizer_to_config(make_optimizer(name));
      made["config"]["learning_rate"] = {
          {"class_name", "ExponentialDecay"},
          {"config", {{"initial_learning_rate", 0.01}, {"decay_steps", 10}, {"decay_rate", 0.9}}}};
      made["config"]["weight_decay"] = 1e-3;
      made["config"]["global_clipnorm"] = 1;
      made["config"]["use_ema"] = true;
      return optimizer_from_config(made);
    });
  }
  return all;
}

/// The scale is so high at first that steps are skipped, and then doubles every three.
OptimizerHandle scaled() {
  return LossScaleOptimizer(Adam(0.01), {.initial_scale = 3e38, .dynamic_growth_steps = 3});
}

/// A float32 model whose gradients overflow when they are scaled, because of large activations.
Sequential narrow_model() {
  const auto dense = [](int64_t units, const char* activation, double stddev, int64_t seed) {
    return Dense(units, {.activation = activation,
                         .kernel_initializer = RandomNormal({.stddev = stddev, .seed = seed})});
  };
  return Sequential({dense(14, "relu", 30, 21), dense(5, "linear", 0.01, 23)});
}

OptimizerHandle several() {
  return MultiOptimizer(
      OptimizerMap(Lion(0.01), {{"hidden_1/.*", Lamb(0.02)}, {"logits/.*", SGD()}}));
}

}  // namespace

TEST_CASE("replayed steps equal eager ones with every optimizer") {
  auto all = all_optimizers();
  all.push_back(several);
  for (const SmallScheme& scheme : small_schemes()) {
    if (scheme.layouts != "fsdp" && scheme.layouts != "model") continue;
    const Mesh mesh = create_mesh(scheme.mesh, virtual_cpus(8));
    for (const auto& make : all) {
      CompileOptions options = small_compile(small_layouts(scheme.layouts, mesh));
      options.optimizer = make();
      CAPTURE(scheme.layouts, options.optimizer->class_name());
      const Outcome replayed = trained(small_model(), options, 2);
      CHECK(replayed.records.why == "");
      CHECK(replayed.records.replayed == 10);
      options.optimizer = make();
      options.run_eagerly = true;
      check_equal(replayed, trained(small_model(), options, 2));
    }
  }
}

TEST_CASE("a replayed step multiplies its loss by the current scale") {
  const Mesh mesh = create_mesh({{"batch", 4}}, virtual_cpus(4));
  CompileOptions options = small_compile(LayoutMap(mesh));
  options.optimizer = scaled();
  const OptimizerHandle recorded = options.optimizer;
  const Outcome replayed = trained(narrow_model(), options);
  CHECK(replayed.records.why == "");
  CHECK(replayed.records.replayed == 31);
  CHECK(recorded->iterations() < recorded->steps());
  options.optimizer = scaled();
  options.run_eagerly = true;
  check_equal(replayed, trained(narrow_model(), options));
  CHECK(options.optimizer->state() == recorded->state());
}

}  // namespace recorded_optimizers_test
