#include <string>

#include <ATen/ATen.h>

#include <tessera/framework/mesh/internal/view.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"

/// Models with a pipeline in their layouts, through fit, evaluate and predict.
namespace pipeline_fit_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

Sequential fitted(const LayoutMap& layouts) {
  const Sequential model = small_model();
  model.compile(small_compile(layouts));
  return model;
}

LayoutMap in_stages(const MeshDims& mesh, const std::string& schedule, int64_t microbatches) {
  LayoutMap layouts(create_mesh(mesh));
  layouts.set_data("x", {"batch", unsharded});
  layouts.set_data("y", {"batch"});
  layouts.set_pipeline({.microbatches = microbatches, .schedule = schedule});
  return layouts;
}

void check_equal(const Logs& actual, const Logs& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CHECK(actual[i].first == expected[i].first);
    CHECK(actual[i].second == Approx(expected[i].second).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("fit, evaluate and predict of a pipeline are those of one device", "[pipeline]") {
  const TensorDataset train = small_data(50), test = small_data(21, 2);
  const FitOptions options = {.batch_size = 23, .epochs = 3, .verbose = 0, .validation_data = test};
  const Sequential plain = fitted(LayoutMap(create_mesh({{"batch", 1}})));
  const History expected = plain.fit(train, options);
  for (const char* const schedule : {"gpipe", "1f1b"}) {
    CAPTURE(schedule);
    const Sequential staged = fitted(in_stages({{"stage", 2}, {"batch", 2}}, schedule, 4));
    const History actual = staged.fit(train, options);
    REQUIRE(actual.steps.size() == expected.steps.size());
    for (size_t step = 0; step < actual.steps.size(); ++step) {
      CHECK(actual.steps[step] == Approx(expected.steps[step]).epsilon(1e-12));
    }
    const std::vector<at::Tensor> weights = full_weights(staged), wanted = full_weights(plain);
    for (size_t w = 0; w < wanted.size(); ++w) {
      CHECK(difference(weights[w], wanted[w], 1e-12, 1e-12) == "");
    }
    const EvaluateOptions passes = {.batch_size = 8, .verbose = 0};
    check_equal(staged.evaluate(test, passes), plain.evaluate(test, passes));
    const PredictOptions rows = {.batch_size = 5, .verbose = 0};
    CHECK(difference(staged.predict(test, rows), plain.predict(test, rows), 1e-12, 1e-12) == "");
  }
}

TEST_CASE("the weights of a pipeline are on the devices of their stages", "[pipeline]") {
  const Sequential model = fitted(in_stages({{"stage", 3}, {"batch", 1}}, "1f1b", 4));
  model.fit(small_data(24), {.batch_size = 24, .epochs = 1, .verbose = 0});
  std::vector<int64_t> stages;
  for (const Variable& weight : model->weights()) {
    const MeshDims at = fixed_coordinates(weight.layout().mesh());
    REQUIRE(at.size() == 1);
    stages.push_back(at[0].second);
  }
  // Kernel and bias of each of three layers.
  CHECK(stages == std::vector<int64_t>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("a model whose layers need all rows of a batch is refused in stages", "[pipeline]") {
  const Sequential model({Dense(6, {.name = "first"}), BatchNormalization({.name = "moments"}),
                          Dense(5, {.name = "logits"})});
  model.compile({.optimizer = SGD(0.1),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = in_stages({{"stage", 2}, {"batch", 1}}, "gpipe", 4)});
  CHECK_THROWS_WITH(model.fit(small_data(24), {.batch_size = 24, .verbose = 0}),
                    Contains("moments") && Contains("LayerNormalization"));
}

TEST_CASE("a layer that keeps its states between batches is refused in stages", "[pipeline]") {
  LayoutMap layouts(create_mesh({{"stage", 2}, {"batch", 1}}));
  layouts.set_pipeline({.microbatches = 4});
  const Sequential model(
      {LSTM(6, {.stateful = true, .name = "memory"}), Dense(5, {.name = "logits"})});
  model.compile({.optimizer = SGD(0.1),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  const TensorDataset data(at::ones({24, 3, 4}), at::zeros({24}, at::kLong));
  CHECK_THROWS_WITH(model.fit(data, {.batch_size = 8, .verbose = 0}),
                    Contains("memory") && Contains("stateful"));
}

}  // namespace pipeline_fit_test
