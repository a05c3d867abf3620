#include <cmath>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Stages that compute in float16 and bfloat16.
namespace pipeline_half_test {

using namespace tessera;
using namespace tessera::test;

namespace {

LayoutMap in_stages(int64_t microbatches, const std::string& schedule) {
  LayoutMap layouts(create_mesh({{"stage", 2}, {"batch", 1}}));
  layouts.set_pipeline({.microbatches = microbatches, .schedule = schedule});
  return layouts;
}

struct Trained {
  std::vector<double> losses, scales;
  std::vector<at::Tensor> weights;
};

/// Trains on inputs and with a loss scale for which the gradient of the first kernel overflows,
/// and not that of the last one. Rows are equal, so that nothing cancels out.
Trained trained_in_float16(const LayoutMap& layouts) {
  const DTypeScope half("mixed_float16");
  const auto dense = [](const char* name, double bound, int64_t seed) {
    return Dense(8, {.kernel_initializer = RandomUniform({-bound, bound, seed}), .name = name});
  };
  const Sequential model({dense("first", 0.003, 1), dense("second", 0.5, 2), dense("third", 0.5, 3),
                          dense("logits", 0.5, 4)});
  const LossScaleOptimizer optimizer(SGD(1e-7), {.initial_scale = 16384});
  model.compile({.optimizer = optimizer,
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  const at::Tensor row = random_values({{1, 18}, at::kFloat, 100, 300}, 1);
  const Examples batch = {.x = {row.repeat({24, 1})}, .y = {at::zeros({24}, at::kLong)}};
  Trained trained;
  for (int step = 0; step < 14; ++step) {
    trained.losses.push_back(model.train_on_batch(batch)[0].second);
    trained.scales.push_back(optimizer.dynamic_scale());
  }
  trained.weights = full_weights(model);
  return trained;
}

/// Returns a weight of 0 after a step whose gradient is 1 for each of some rows.
double after_ones(int64_t rows, const LayoutMap& layouts) {
  const DTypeScope half("mixed_bfloat16");
  const Sequential model({Dense(1, {.use_bias = false, .kernel_initializer = "ones"}),
                          Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})});
  model.compile({.optimizer = SGD(1),
                 .loss = MeanAbsoluteError({.reduction = Reduction::sum}),
                 .layouts = layouts});
  model.train_on_batch({.x = {at::ones({rows, 1})}, .y = {at::ones({rows, 1})}});
  return full_weights(model)[1].item<double>();
}

}  // namespace

TEST_CASE("stages in float16 agree on a loss scale, and on the steps that it skips", "[pipeline]") {
  const Trained plain = trained_in_float16(LayoutMap(create_mesh({{"batch", 1}})));
  REQUIRE(plain.scales.front() < 16384);
  REQUIRE(plain.scales.back() == plain.scales[plain.scales.size() - 2]);
  for (const char* const schedule : {"1f1b", "zb_v"}) {
    CAPTURE(schedule);
    const Trained staged = trained_in_float16(in_stages(4, schedule));
    CHECK(staged.scales == plain.scales);
    for (size_t step = 0; step < plain.losses.size(); ++step) {
      CHECK(staged.losses[step] == Approx(plain.losses[step]).epsilon(2e-3));
    }
    for (size_t w = 0; w < plain.weights.size(); ++w) {
      CHECK(difference(staged.weights[w], plain.weights[w], 1e-4, 1e-6) == "");
    }
  }
}

TEST_CASE("the gradients of bfloat16 microbatches are added up in float32", "[pipeline]") {
  // In bfloat16, 256 + 1 is 256.
  constexpr int64_t rows = 300;
  CHECK(after_ones(rows, LayoutMap(create_mesh({{"batch", 1}}))) == rows);
  CHECK(after_ones(rows, in_stages(rows, "1f1b")) == rows);
}

}  // namespace pipeline_half_test
