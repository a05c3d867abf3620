#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/internal/moving_averages.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace multi_optimizer_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;
using test::difference;

namespace {

const Mesh& mesh() {
  static const Mesh made = create_mesh({{"batch", 4}});
  return made;
}

Variable weight(const std::string& path = "dense/kernel") {
  return Variable(path, pack(at::ones({8, 4}), Layout::batch_sharded(mesh(), "batch", 2)));
}

DTensor gradient() { return pack(at::ones({8, 4}), Layout::batch_sharded(mesh(), "batch", 2)); }

}  // namespace

TEST_CASE("an OptimizerMap finds keys literally, then as expressions, then its default") {
  const OptimizerHandle adam = Adam(), sgd = SGD(), rmsprop = RMSprop();
  OptimizerMap map(rmsprop);
  map.set("encoder/layer_0/dense", adam);
  map.set("encoder/.*", sgd);
  CHECK(map.at("encoder/layer_0/dense")->class_name() == "Adam");
  CHECK(map.at("encoder/layer_0/attention")->class_name() == "SGD");
  CHECK(map.at("my/encoder/layer_0")->class_name() == "RMSprop");
  CHECK(MultiOptimizer(map).optimizers().size() == 3);
}

TEST_CASE("each variable is updated by the optimizer that a function returns for it") {
  Variable kernel = weight("a/kernel"), bias = weight("a/bias"), other = weight("b/kernel");
  const OptimizerHandle fast = SGD(1.0, {.use_ema = true, .ema_momentum = 0.5});
  const OptimizerHandle slow = SGD(0.25, {.loss_scale_factor = 99});
  const MultiOptimizer several(
      [&](const Variable& variable) { return variable.path() == "a/kernel" ? fast : slow; },
      {.loss_scale_factor = 2});
  const std::vector<Variable> all = {kernel, bias, other};
  several->apply({gradient(), gradient(), DTensor()}, all);
  CHECK(difference(kernel.value().full(), at::full({8, 4}, 0.5)) == "");
  CHECK(difference(bias.value().full(), at::full({8, 4}, 0.875)) == "");
  CHECK(difference(other.value().full(), at::ones({8, 4})) == "");
  CHECK(several.optimizers().size() == 2);
  CHECK(several->iterations() == 1);
  CHECK(several->scale_loss(scalar(3, mesh())).item() == 6);
  several->apply({gradient(), DTensor(), DTensor()}, all);
  CHECK(fast->iterations() == 2);
  CHECK(slow->iterations() == 1);
  // 0 after the first step, (0.5 + 0) / 2.
  CHECK(MovingAverages::enabled(*several));
  several->finalize_variable_values(all);
  CHECK(difference(kernel.value().full(), at::full({8, 4}, 0.25)) == "");
  CHECK(difference(bias.value().full(), at::full({8, 4}, 0.875)) == "");
}

TEST_CASE("an OptimizerMap names invalid arguments") {
  const LossScaleOptimizer scaled{SGD()};
  CHECK_THROWS_WITH(OptimizerMap(scaled), Contains("LossScaleOptimizer"));
  CHECK_THROWS_WITH(OptimizerMap(SGD(), {{"(a", Adam()}}), Contains("\"(a\""));
  CHECK_THROWS_WITH(OptimizerMap(SGD(), {{"a", Adam()}, {"a", Adam()}}), Contains("twice"));
  CHECK_THROWS_WITH(OptimizerMap(SGD(), {{"a.*", Adam()}, {".*b", Adam()}}).at("ab"),
                    Contains("[OptimizerMap, ab]"));
  const MultiOptimizer several(OptimizerMap{SGD()});
  CHECK_THROWS_AS(several->learning_rate(), StateError);
  CHECK_THROWS_AS(several->set_learning_rate(0.1), StateError);
  const MultiOptimizer wrong([&](const Variable&) { return OptimizerHandle(several); });
  CHECK_THROWS_WITH(wrong->build({weight()}),
                    Contains("dense/kernel") && Contains("MultiOptimizer"));
  CHECK(wrong->config().at("optimizer_map").is_null());
  CHECK_THROWS_WITH(optimizer_from_config(optimizer_to_config(wrong)), Contains("optimizer_map"));
}

}  // namespace multi_optimizer_test
