#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/virtual_meshes.hpp"
#include "tests/training/recorded.hpp"

namespace recorded_tests_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

Sequential rich_model() {
  const DenseOptions hidden = {.activation = "relu",
                               .kernel_initializer = GlorotUniform({.seed = 21}),
                               .kernel_regularizer = L2(1e-3),
                               .dtype = "float64"};
  const DenseOptions logits = {.kernel_initializer = GlorotUniform({.seed = 23}),
                               .dtype = "float64"};
  return Sequential({Dense(14, hidden), Dropout(0.3, {.dtype = "float64"}),
                     BatchNormalization({.dtype = "float64"}), Dense(5, logits)});
}

Sequential compiled(bool run_eagerly) {
  const Sequential model = rich_model();
  model.compile({.optimizer = SGD(0.1),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .run_eagerly = run_eagerly,
                 .layouts = LayoutMap(virtual_mesh({2, 2}))});
  return model;
}

const StepRecords& of_tests(const Sequential& model) { return model.test_step_records(); }

}  // namespace

TEST_CASE("steps of evaluations and validations are recorded and equal eager ones") {
  const Sequential replayed = compiled(false), eager = compiled(true);
  const TensorDataset data = small_data(100, 1, true);
  FitOptions options = {.batch_size = 16, .epochs = 3, .verbose = 0};
  options.validation_data = data;
  const History actual = replayed.fit(data, options), expected = eager.fit(data, options);
  REQUIRE(actual.history.size() == expected.history.size());
  for (size_t i = 0; i < expected.history.size(); ++i) {
    CAPTURE(expected.history[i].first);
    CHECK(difference(at::tensor(actual.history[i].second, at::kDouble),
                     at::tensor(expected.history[i].second, at::kDouble), 1e-12) == "");
  }
  // Seven steps of each validation, the last with another signature.
  CHECK(of_tests(replayed).recorded == 2);
  CHECK(of_tests(replayed).replayed == 3 * 7 - 4);
  CHECK(of_tests(eager).replayed == 0);
  const Logs here = replayed.evaluate(data, {.batch_size = 16, .verbose = 0});
  CHECK(of_tests(replayed).replayed == 4 * 7 - 4);
  CHECK(here.size() == 2);
  for (size_t i = 0; i < here.size(); ++i) {
    const double value = eager.evaluate(data, {.batch_size = 16, .verbose = 0})[i].second;
    CHECK(here[i].second == Approx(value).epsilon(1e-12));
  }
}

TEST_CASE("steps of predictions are recorded, and their outputs outlive the next one") {
  const Sequential replayed = compiled(false), eager = compiled(true);
  const at::Tensor x = at::randn({96, 8}, at::kDouble);
  const auto predict = [&](const Sequential& model) {
    return model.predict(x, {.batch_size = 16, .verbose = 0});
  };
  CHECK(difference(predict(replayed), predict(eager), 1e-12) == "");
  CHECK(replayed.predict_step_records().replayed == 4);
  CHECK(eager.predict_step_records().replayed == 0);
  // Each output stays as it was returned.
  std::vector<at::Tensor> outputs, copies;
  for (int64_t at = 0; at < 96; at += 16) {
    outputs.push_back(replayed.predict_on_batch(
        TensorDataset(x.narrow(0, at, 16))
            .get(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}))[0]);
    copies.push_back(outputs.back().clone());
  }
  for (size_t i = 0; i < outputs.size(); ++i) CHECK(difference(outputs[i], copies[i]) == "");
}

TEST_CASE("training between two evaluations affects the second") {
  const Sequential model = compiled(false);
  const TensorDataset data = small_data(96, 1, true);
  const auto loss = [&] {
    return model.evaluate(data, {.batch_size = 16, .verbose = 0})[1].second;
  };
  const double before = loss();
  CHECK(loss() == before);
  model.fit(data, {.batch_size = 16, .epochs = 1, .verbose = 0});
  CHECK(loss() != before);
  // Freezing or unfreezing a layer discards the recordings.
  model.layers()[0]->set_trainable(false);
  CHECK(std::isfinite(loss()));
}

}  // namespace recorded_tests_test
