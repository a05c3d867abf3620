#include <limits>
#include <vector>

#include <tessera/tessera.hpp>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Stages on a GPU each.
namespace gpu_pipeline_test {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Trained {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
  double scale = 0;
};

/// Trains with a loss scale that overflows in the first steps.
Trained trained(const Mesh& mesh, bool in_stages) {
  set_random_seed(3);
  LayoutMap layouts(mesh);
  if (in_stages) layouts.set_pipeline({.microbatches = 4, .schedule = "1f1b"});
  const LossScaleOptimizer optimizer(SGD(1e-4, {.momentum = 0.9}), {.initial_scale = 3e38});
  const Sequential model({Dense(14, {.activation = "relu"}), Dense(9), Dense(5)});
  model.compile({.optimizer = optimizer,
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  const TensorDataset data(random_values({{50, 18}, at::kFloat, -10, 10}, 1),
                           random_values({{50}, at::kLong, 0, 5}, 2));
  Trained result;
  result.losses = model.fit(data, {.batch_size = 24, .epochs = 6, .verbose = 0}).steps;
  for (const Variable& weight : model->weights()) {
    result.weights.push_back(weight.value().full().cpu());
  }
  result.scale = optimizer.dynamic_scale();
  return result;
}

}  // namespace

TEST_CASE("stages on two GPUs train as one CPU does, and agree on a loss scale") {
  const Trained expected = trained(create_mesh({{"batch", 1}}), false);
  REQUIRE(expected.scale < 3e38);
  const Trained actual = trained(gpu_mesh({{"stage", 2}}), true);
  CHECK(actual.scale == expected.scale);
  REQUIRE(actual.losses.size() == expected.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    CHECK(actual.losses[i] == Approx(expected.losses[i]).epsilon(1e-4));
  }
  for (size_t w = 0; w < expected.weights.size(); ++w) {
    CHECK(difference(actual.weights[w], expected.weights[w], 1e-4, 1e-5) == "");
  }
}

}  // namespace gpu_pipeline_test
