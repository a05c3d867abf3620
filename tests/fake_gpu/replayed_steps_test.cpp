#include <functional>

#include <tessera/tessera.hpp>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace replayed_steps_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr int64_t classes = 5;

using OptimizerOf = std::function<OptimizerHandle()>;

struct Trained {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
  StepRecords records;
  double scale = 0;
  Json state;
};

/// Trains with dropout, a schedule and a short last batch. The first steps overflow the loss scale,
/// the last ones freeze a layer.
Trained trained(const OptimizerHandle& inner, bool run_eagerly) {
  set_random_seed(3);
  const LossScaleOptimizer scaled(inner, {.initial_scale = 3e38, .dynamic_growth_steps = 7});
  const Sequential model({Dense(14, {.activation = "relu"}), Dropout(0.3), Dense(classes)});
  model.compile({.optimizer = scaled,
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .run_eagerly = run_eagerly,
                 .layouts = LayoutMap(gpu_mesh({{"batch", 2}}))});
  const TensorDataset data(random_values({{100, 8}, at::kFloat, -100, 100}, 1),
                           random_values({{100}, at::kLong, 0, double(classes)}, 2));
  History history = model.fit(data, {.batch_size = 16, .epochs = 8, .verbose = 0});
  Trained result;
  result.losses = history.steps;
  model.layers()[0]->set_trainable(false);
  history = model.fit(data, {.batch_size = 16, .epochs = 2, .verbose = 0});
  result.losses.insert(result.losses.end(), history.steps.begin(), history.steps.end());
  for (const Variable& weight : model->weights()) result.weights.push_back(weight.value().full());
  for (const Variable& slot : scaled->variables()) result.weights.push_back(slot.value().full());
  result.records = model.step_records();
  result.scale = scaled.dynamic_scale();
  result.state = scaled->state();
  return result;
}

}  // namespace

TEST_CASE("more than fifty replayed steps on GPUs equal the eager ones bit for bit") {
  const ExponentialDecay rate(1e-3, 10, 0.9);
  const auto make = GENERATE_COPY(
      OptimizerOf([=] { return SGD(rate, {.momentum = 0.9, .global_clipnorm = 0.5}); }),
      OptimizerOf([=] { return Adam(rate, {.clipnorm = 0.5, .gradient_accumulation_steps = 3}); }));
  const Trained replayed = trained(make(), false), eager = trained(make(), true);
  REQUIRE(replayed.losses.size() == 70);
  CHECK(replayed.losses == eager.losses);
  REQUIRE(replayed.weights.size() == eager.weights.size());
  for (size_t i = 0; i < eager.weights.size(); ++i) {
    CHECK(difference(replayed.weights[i], eager.weights[i], 0, 0) == "");
  }
  CHECK(replayed.scale == eager.scale);
  CHECK(replayed.scale < 3e38);
  CHECK(replayed.state == eager.state);
  CHECK(replayed.records.why == "");
  CHECK(replayed.records.replayed >= 50);
  CHECK(eager.records.replayed == 0);
}

}  // namespace replayed_steps_test
