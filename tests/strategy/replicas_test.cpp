#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/strategy/strategies.hpp>
#include <tessera/tessera.hpp>

#include "tests/strategy/guide_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_communicator.hpp"

namespace replicas_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::strategy;

namespace {

struct Outcome {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

/// Trains two epochs by a custom loop, with batches of 22 and last ones of 14 rows.
Outcome train(const Strategy& strategy, const Sequential& model) {
  const OptimizerHandle optimizer = Adam(1e-2, {.epsilon_on_corrected_root = true});
  const SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = Reduction::none});
  const auto data = strategy.experimental_distribute_dataset(small_data(80, 3, true),
                                                             {.batch_size = 22, .shuffle = true});
  const auto step = [&](const Batch& batch) {
    GradientTape tape;
    const DTensor logits = model(batch.x[0], {.training = true});
    std::vector<DTensor> values;
    for (const Variable& variable : model.trainable_weights()) values.push_back(variable.value());
    const DTensor loss =
        compute_average_loss((*loss_object)(batch.y[0], logits), batch.sample_weight[0]);
    optimizer->apply(tape.gradient(loss, values), model.trainable_weights());
    return loss;
  };
  Outcome outcome;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : data) {
      outcome.losses.push_back(strategy.reduce("SUM", strategy.run(step, batch)).item());
    }
  }
  outcome.weights = full_weights(model);
  return outcome;
}

std::string difference(const Outcome& a, const Outcome& b) {
  if (a.losses.size() != b.losses.size()) return "steps";
  std::string text = test::difference(at::tensor(a.losses), at::tensor(b.losses), 1e-10, 1e-12);
  for (size_t i = 0; text.empty() && i < a.weights.size(); ++i) {
    text = test::difference(a.weights[i], b.weights[i], 1e-8, 1e-10);
  }
  return text;
}

/// A model whose batch statistics are global.
Sequential normalized_model() {
  const auto dense = [](int64_t units, int64_t seed) {
    return Dense(units, {.kernel_initializer = GlorotUniform({.seed = seed}), .dtype = "float64"});
  };
  return Sequential({dense(8, 1), BatchNormalization({.dtype = "float64"}), dense(5, 2)});
}

}  // namespace

TEST_CASE("a custom loop gives the same losses and weights on 1, 2, 3 and 8 replicas") {
  const Outcome alone = train(default_strategy(), small_model());
  REQUIRE(alone.losses.size() == 8);
  CHECK(alone.losses[4] != alone.losses[0]);
  for (const int64_t devices : {1, 2, 3, 8}) {
    const MeshStrategy strategy(create_mesh({{"batch", devices}}));
    CHECK(difference(train(strategy, small_model()), alone) == "");
  }
  const MirroredStrategy reduced(
      {.devices = {"cpu:0", "cpu:1", "cpu:2"}, .cross_device_ops = ReductionToOneDevice()});
  CHECK(difference(train(reduced, small_model()), alone) == "");
  const CentralStorageStrategy central({.compute_devices = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}});
  CHECK(difference(train(central, small_model()), alone) == "");
}

TEST_CASE("batch normalization is synchronized over replicas") {
  const Outcome alone = train(default_strategy(), normalized_model());
  const MeshStrategy four(create_mesh({{"batch", 4}}));
  CHECK(difference(train(four, normalized_model()), alone) == "");
}

TEST_CASE("a custom loop gives the same losses and weights on two processes") {
  const Outcome alone = train(default_strategy(), normalized_model());
  CHECK_NOTHROW(run_ranks(2, [&](int, const auto& communicator) {
    const MeshStrategy strategy(rank_mesh({{"batch", 4}}, communicator));
    const std::string text = difference(train(strategy, normalized_model()), alone);
    expect(text.empty(), text);
  }));
}

TEST_CASE("fit under a scope equals fit with the strategy's layouts") {
  const MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}});
  const FitOptions fit = {.batch_size = 6, .epochs = 2, .verbose = 0};
  CompileOptions options = small_compile({});
  const Sequential scoped = small_model(), alone = small_model();
  strategy.run([&] { scoped.compile(options); });
  const History history = scoped.fit(small_data(45), fit);
  alone.compile(small_compile(LayoutMap(default_mesh())));
  const History expected = alone.fit(small_data(45), fit);
  for (const char* name : {"loss", "accuracy"}) {
    const at::Tensor values = at::tensor(history.at(name));
    CHECK(test::difference(values, at::tensor(expected.at(name)), 1e-9) == "");
  }
  CHECK(scoped.weights()[0].layout().mesh() == strategy.mesh());
}

}  // namespace replicas_test
