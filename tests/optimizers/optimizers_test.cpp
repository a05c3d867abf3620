// Behaviour that all optimizers share without options: where updates happen and what they reduce,
// slots and their names, steps and rates.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"

namespace optimizers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

Variable weight(at::ScalarType dtype = at::kFloat) {
  return Variable("dense/kernel", pack(at::ones({8, 4}, dtype), default_layout(2)));
}

/// Ones on every device of the mesh's first dimension, as a partial sum.
DTensor pending_gradient(const Mesh& mesh) {
  return filled({8, 4}, 1, at::kFloat, Layout::replicated(mesh, 2).with_partial(1, Reduce::sum));
}

}  // namespace

TEST_CASE("weights and slots are updated in their layouts") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    const Mesh mesh = create_mesh({{"batch", 2}});
    const Layout layout = Layout::batch_sharded(mesh, "batch", 2);
    Variable w("kernel", pack(at::ones({8, 4}), layout));
    const Adam adam;
    const DTensor gradient = pack(at::ones({8, 4}), layout);
    adam->apply({gradient}, {w});
    const void* weight_memory = w.value().blocks()[0].data_ptr();
    const void* slot_memory = adam->variables_of(w)[0].value().blocks()[0].data_ptr();
    for (int step = 0; step < 3; ++step) adam->apply({gradient}, {w});
    CHECK(w.value().blocks()[0].data_ptr() == weight_memory);
    CHECK(adam->variables_of(w)[0].value().blocks()[0].data_ptr() == slot_memory);
    CHECK(difference(gradient.full(), at::ones({8, 4})) == "");
  }
}

TEST_CASE("a saved value does not change with a step") {
  for (const OptimizerHandle& optimizer : {OptimizerHandle(SGD(0.5)), OptimizerHandle(Adam(0.5))}) {
    Variable w = weight();
    const DTensor saved = w.value();
    optimizer->apply({pack(at::ones({8, 4}), w.layout())}, {w});
    CHECK(difference(saved.full(), at::ones({8, 4})) == "");
    CHECK_FALSE(at::equal(w.value().full(), at::ones({8, 4})));
  }
}

TEST_CASE("a data-parallel step reduces each gradient once, straight into sharded weights") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  for (bool cut : {false, true}) {
    const Layout layout =
        cut ? Layout::batch_sharded(mesh, "batch", 2) : Layout::replicated(mesh, 2);
    Variable w("kernel", pack(at::ones({8, 4}), layout));
    const Adam adam;
    const DTensor gradient = pending_gradient(mesh);
    CommLog log;
    const CommLogScope scope(log);
    adam->apply({gradient}, {w});
    CHECK(log.entries().size() == 1);
    CHECK(log.count(cut ? CommOp::reduce_scatter : CommOp::all_reduce, "batch") == 1);
  }
}

TEST_CASE("slots sharded further than their weight cost a reduce-scatter and an all-gather") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  Variable w("kernel", pack(at::ones({8, 4}), Layout::replicated(mesh, 2)));
  const Layout slots = Layout::batch_sharded(mesh, "batch", 2);
  w.place({w.shape(), w.layout(), std::nullopt, slots});
  const Adam adam;
  CommLog log;
  const CommLogScope scope(log);
  adam->apply({pending_gradient(mesh)}, {w});
  CHECK(adam->variables_of(w)[0].value().layout() == slots);
  CHECK(w.value().layout() == Layout::replicated(mesh, 2));
  CHECK(log.entries().size() == 2);
  CHECK(log.count(CommOp::reduce_scatter, "batch") == 1);
  CHECK(log.count(CommOp::all_gather, "batch") == 1);
}

TEST_CASE("slots keep their values when their variable's layout changes") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  Variable w("kernel", pack(at::ones({8, 4}), Layout::replicated(mesh, 2)));
  Variable still = weight();
  const Adam adam;
  const at::Tensor gradient = at::linspace(-1, 1, 32).reshape({8, 4});
  for (int step = 0; step < 4; ++step) {
    if (step == 2) {
      w.place({w.shape(), Layout::batch_sharded(mesh, "batch", 2)});
      adam->build({w});
      CHECK(adam->variables_of(w)[0].value().layout() == w.layout());
    }
    adam->apply({pack(gradient, w.layout())}, {w});
  }
  const Adam plain;
  for (int step = 0; step < 4; ++step) plain->apply({pack(gradient, still.layout())}, {still});
  CHECK(difference(w.value().full(), still.value().full(), 1e-6) == "");
}

TEST_CASE("slots have Keras' names under their variable's path") {
  Variable w = weight();
  const auto paths = [&](const OptimizerHandle& optimizer) {
    optimizer->build({w});
    std::vector<std::string> all;
    for (const Variable& slot : optimizer->variables()) {
      all.push_back(slot.path());
      CHECK_FALSE(slot.trainable());
    }
    return all;
  };
  using Paths = std::vector<std::string>;
  CHECK(paths(SGD()) == Paths{});
  CHECK(paths(SGD(0.1, {.momentum = 0.9})) == Paths{"sgd/dense/kernel/momentum"});
  CHECK(paths(Adam()) == Paths{"adam/dense/kernel/momentum", "adam/dense/kernel/velocity"});
  CHECK(paths(AdamW(0.1, {.amsgrad = true})) == Paths{"adam_w/dense/kernel/momentum",
                                                      "adam_w/dense/kernel/velocity",
                                                      "adam_w/dense/kernel/velocity_hat"});
  CHECK_THROWS_AS(SGD()->variables_of(w), StateError);
}

TEST_CASE("a variable without a gradient is skipped") {
  Variable first = weight();
  Variable second = weight();
  const AdamW adam(0.1);
  adam->apply({pack(at::ones({8, 4}), first.layout()), DTensor()}, {first, second});
  CHECK_FALSE(at::equal(first.value().full(), at::ones({8, 4})));
  CHECK(difference(second.value().full(), at::ones({8, 4})) == "");
  CHECK(adam->iterations() == 1);
}

TEST_CASE("the rate can change between steps, and the step count be restored") {
  Variable w = weight();
  const SGD sgd(0.5);
  sgd->apply({pack(at::ones({8, 4}), w.layout())}, {w});
  sgd->set_learning_rate(0.25);
  sgd->apply({pack(at::ones({8, 4}), w.layout())}, {w});
  CHECK(difference(w.value().full(), at::full({8, 4}, 0.25)) == "");
  sgd->set_steps(7);
  sgd->apply({pack(at::ones({8, 4}), w.layout())}, {w});
  CHECK(sgd->iterations() == 8);
}

TEST_CASE("an optimizer names invalid arguments") {
  Variable w = weight();
  const DTensor gradient = pack(at::ones({8, 4}), w.layout());
  CHECK_THROWS_AS(SGD(-0.1), ConfigError);
  CHECK_THROWS_AS(SGD(std::nan("")), ConfigError);
  CHECK_THROWS_AS(SGD()->set_learning_rate(-1), ConfigError);
  CHECK_THROWS_AS(SGD(0.1, {.momentum = 1.5}), ConfigError);
  CHECK_THROWS_AS(SGD(0.1, {.weight_decay = -1}), ConfigError);
  CHECK_THROWS_AS(Adam(0.1, {.beta_1 = 1}), ConfigError);
  CHECK_THROWS_AS(Adam(0.1, {.epsilon = -1}), ConfigError);
  CHECK_THROWS_AS(SGD()->apply({gradient, gradient}, {w}), ConfigError);
  CHECK_THROWS_AS(SGD()->apply({DTensor()}, {w}), StateError);
  CHECK_THROWS_WITH(SGD()->apply({pack(at::ones({4, 8}), w.layout())}, {w}),
                    Catch::Contains("dense/kernel") && Catch::Contains("(4, 8)"));
  CHECK(difference(w.value().full(), at::ones({8, 4})) == "");
}

TEST_CASE("optimizers are known by Keras' names") {
  for (const char* name : {"SGD", "Adam", "AdamW"}) {
    CHECK(OptimizerHandle(name)->class_name() == name);
  }
  CHECK(OptimizerHandle("adamw")->class_name() == "AdamW");
  CHECK(OptimizerHandle("adam")->learning_rate() == 0.001);
  CHECK_THROWS_WITH(OptimizerHandle("adma"), Catch::Contains("\"adam\""));
  CHECK(AdamW()->config().at("weight_decay") == 0.004);
  const OptimizerHandle copy = OptimizerHandle("sgd");
  const OptimizerHandle same = copy;
  same->set_steps(3);
  CHECK(copy->iterations() == 3);
}

}  // namespace optimizers_test
