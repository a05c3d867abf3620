#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/optimizer/internal/moving_averages.hpp>
#include <tessera/framework/optimizer/internal/part_updater.hpp>
#include <tessera/framework/optimizer/internal/update_strategy.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace loss_scale_optimizer_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;
using test::difference;

namespace {

using Names = std::vector<std::string>;

const Mesh& mesh() {
  static const Mesh made = create_mesh({{"batch", 4}});
  return made;
}

Variable weight(const std::string& path = "dense/kernel") {
  return Variable(path, pack(at::ones({8, 4}), Layout::batch_sharded(mesh(), "batch", 2)));
}

/// Ones but for the last element, on the last device.
DTensor gradient(double last = 1) {
  at::Tensor full = at::ones({8, 4});
  full[7][3] = last;
  return pack(full, Layout::batch_sharded(mesh(), "batch", 2));
}

Names paths(const std::vector<Variable>& variables) {
  Names all;
  for (const Variable& variable : variables) all.push_back(variable.path());
  return all;
}

}  // namespace

TEST_CASE("a gradient that overflows on one device skips the step on all and halves the scale") {
  Variable w = weight();
  const LossScaleOptimizer scaled(SGD(1.0), {.initial_scale = 4, .dynamic_growth_steps = 2});
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    scaled->apply({gradient(bad)}, {w});
    CHECK(difference(w.value().full(), at::ones({8, 4})) == "");
  }
  CHECK(scaled.dynamic_scale() == 1);
  CHECK(scaled->steps() == 2);
  CHECK(scaled->iterations() == 0);
  scaled->apply({gradient()}, {w});
  CHECK(scaled.dynamic_scale() == 1);
  scaled->apply({gradient()}, {w});
  CHECK(scaled.dynamic_scale() == 2);
  scaled->apply({gradient()}, {w});
  CHECK(difference(w.value().full(), at::full({8, 4}, -1.5)) == "");
  CHECK(scaled->iterations() == 3);
}

TEST_CASE("a gradient that overflows on one stage skips the step on all") {
  const Mesh stages = create_mesh({{"stage", 2}, {"batch", 2}});
  std::vector<Variable> weights;
  for (const int64_t stage : {0, 1}) {
    const Layout layout = Layout::replicated(stages.view({{"stage", stage}}), 1);
    weights.emplace_back("dense/bias", pack(at::ones({3}), layout));
  }
  const LossScaleOptimizer scaled(SGD(1.0), {.initial_scale = 4});
  const auto step = [&](double first, double second) {
    const DTensor a = pack(at::full({3}, first), weights[0].layout());
    const DTensor b = pack(at::full({3}, second), weights[1].layout());
    scaled->apply({a, b}, weights);
  };
  step(1, std::numeric_limits<double>::infinity());
  step(std::numeric_limits<double>::quiet_NaN(), 1);
  CHECK(scaled.dynamic_scale() == 1);
  for (const Variable& w : weights) CHECK(difference(w.value().full(), at::ones({3})) == "");
  step(1, 2);
  CHECK(difference(weights[0].value().full(), at::zeros({3})) == "");
  CHECK(difference(weights[1].value().full(), at::full({3}, -1.0)) == "");
}

TEST_CASE("whether gradients are finite costs one reduction for all with one sharding") {
  const std::vector<Variable> weights = {weight("a/kernel"), weight("b/kernel")};
  const LossScaleOptimizer scaled(SGD(1.0));
  scaled->build(weights);
  CommLog log;
  const CommLogScope scope(log);
  scaled->apply({gradient(), gradient()}, weights);
  CHECK(log.entries().size() == 1);
}

TEST_CASE("a loss scale is accessible as in Keras") {
  const Adam adam(0.25, {.loss_scale_factor = 8});
  const LossScaleOptimizer scaled(adam, {.initial_scale = 1024, .name = "mine"});
  CHECK(adam->config().at("loss_scale_factor").is_null());
  CHECK(scaled->name() == "mine");
  CHECK(scaled->learning_rate() == 0.25);
  scaled->set_learning_rate(0.5);
  CHECK(scaled.inner_optimizer()->learning_rate() == 0.5);
  CHECK(scaled->scale_loss(scalar(2, mesh())).item() == 2048);
  // In float16 and bfloat16, too, whose range the scale exceeds.
  const DTensor half = scalar(100, mesh(), at::kHalf);
  CHECK(scaled->scale_loss(half).item() == 102400);
  const Variable w = weight();
  scaled->build({w});
  const Names expected = {"adam/dense/kernel/momentum", "adam/dense/kernel/velocity"};
  CHECK(paths(scaled->variables()) == expected);
  CHECK(paths(scaled->variables_of(w)) == expected);
  const Json state = scaled->state();
  const LossScaleOptimizer other(SGD(0.1));
  other->restore(state);
  CHECK(other.dynamic_scale() == 1024);
  CHECK_THROWS_AS(other->restore({{"dynamic_scale", -1}, {"step_counter", 0}}), ConfigError);
  CHECK_THROWS_AS(other->restore({{"scale", 1}}), ConfigError);
}

TEST_CASE("an invalid loss scale is named") {
  CHECK_THROWS_WITH(LossScaleOptimizer(SGD(), {.initial_scale = 0}), Contains("initial_scale"));
  CHECK_THROWS_WITH(LossScaleOptimizer(SGD(), {.dynamic_growth_steps = 0}),
                    Contains("dynamic_growth_steps"));
  const LossScaleOptimizer scaled{SGD()};
  struct Nothing : UpdateStrategy {
    void update(const std::vector<Variable>&, const std::vector<DTensor>&) override {}
  };
  CHECK_THROWS_AS(scaled->set_update_strategy(std::make_shared<Nothing>()), ConfigError);
  CHECK_THROWS_AS(PartUpdater(scaled).build(weight(), weight()), ConfigError);
  CHECK_THROWS_WITH(
      optimizer_from_config({{"class_name", "LossScaleOptimizer"}, {"config", Json::object()}}),
      Contains("inner_optimizer"));
}

TEST_CASE("moving averages and weights are swapped exactly, in every layout") {
  for (const bool cut : {false, true}) {
    Variable w("dense/kernel", pack(at::rand({8, 4}), Layout::replicated(mesh(), 2)));
    const Layout slots = Layout::batch_sharded(mesh(), "batch", 2);
    if (cut) w.place({w.shape(), w.layout(), std::nullopt, slots});
    const LossScaleOptimizer scaled(SGD(0.1, {.use_ema = true, .ema_momentum = 0.9}));
    MovingAverages::swap(*scaled);
    for (int step = 0; step < 3; ++step) scaled->apply({w.value()}, {w});
    const at::Tensor now = w.value().full().clone();
    const at::Tensor mean = scaled->variables()[0].value().full().clone();
    CHECK_FALSE(MovingAverages::swapped(*scaled));
    MovingAverages::swap(*scaled);
    CHECK(MovingAverages::swapped(*scaled));
    CHECK(at::equal(w.value().full(), mean));
    CHECK(at::equal(scaled->variables()[0].value().full(), now));
    MovingAverages::swap(*scaled);
    CHECK(at::equal(w.value().full(), now));
    MovingAverages::swap(*scaled);
    // The end of training leaves the averages in the weights.
    scaled->finalize_variable_values({w});
    CHECK(at::equal(w.value().full(), mean));
    CHECK(at::equal(scaled->variables()[0].value().full(), mean));
    CHECK_FALSE(MovingAverages::swapped(*scaled));
  }
}

}  // namespace loss_scale_optimizer_test
