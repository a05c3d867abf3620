#include <tessera/tessera.hpp>

#include <functional>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/small_model.hpp"

namespace fit_errors_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

LayoutMap on_four() { return LayoutMap(create_mesh({{"batch", 4}})); }

Sequential compiled() {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(on_four()));
  return model;
}

/// Returns the text of the Error that a function throws; it must be one line.
std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.find("Received: ") != std::string::npos);
    return text;
  }
  return "no error";
}

std::string fit_error(const DatasetHandle& data, const FitOptions& options) {
  return error_of([&] { compiled().fit(data, options); });
}

Examples rows_of(const TensorDataset& data) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < data.size(); ++i) rows.push_back(i);
  return data.get(rows);
}

}  // namespace

TEST_CASE("fit refuses invalid options in one line") {
  const TensorDataset data = test::small_data(8);
  CHECK_THAT(fit_error(data, {.batch_size = 0, .verbose = 0}),
             Contains("[fit] batch_size is at least 1. Received: 0."));
  CHECK_THAT(fit_error(data, {.batch_size = -4, .verbose = 0}), Contains("Received: -4"));
  CHECK_THAT(fit_error(data, {.epochs = 0, .verbose = 0}),
             Contains("[fit] epochs is at least 1. Received: 0."));
  CHECK_THAT(fit_error(data, {.verbose = 3}), Contains("verbose") && Contains("Received: 3"));
  CHECK_THAT(fit_error(data, {.verbose = 0, .steps_per_epoch = 0}),
             Contains("[fit] steps_per_epoch is at least 1. Received: 0."));
  CHECK_THAT(fit_error(data, {.verbose = 0, .initial_epoch = -1}),
             Contains("[fit] initial_epoch") && Contains("Received: -1"));
  CHECK_THAT(fit_error(data, {.verbose = 0, .validation_data = data, .validation_steps = 0}),
             Contains("validation_steps is at least 1. Received: 0."));
  CHECK_THAT(fit_error(data, {.verbose = 0, .validation_data = data, .validation_batch_size = 0}),
             Contains("validation_batch_size is at least 1. Received: 0."));
  CHECK_THAT(fit_error({}, {.verbose = 0}), Contains("[fit]") && Contains("Received: no dataset"));
  CHECK_THAT(fit_error(data.take(0), {.verbose = 0}), Contains("Received: an empty dataset"));
  CHECK_THAT(fit_error(data, {.verbose = 0, .validation_data = data.take(0)}),
             Contains("an empty dataset"));
}

TEST_CASE("evaluate and predict refuse invalid options in one line") {
  const TensorDataset data = test::small_data(8);
  CHECK_THAT(error_of([&] { compiled().evaluate(data, {.batch_size = 0, .verbose = 0}); }),
             Contains("[evaluate] batch_size is at least 1. Received: 0."));
  CHECK_THAT(error_of([&] { compiled().evaluate(DatasetHandle(), {.verbose = 0}); }),
             Contains("[evaluate]") && Contains("no dataset"));
  CHECK_THAT(error_of([&] { compiled().evaluate(data, {.verbose = 0, .steps = 0}); }),
             Contains("[evaluate] steps is at least 1. Received: 0."));
  CHECK_THAT(error_of([&] { compiled().predict(data, {.batch_size = 0}); }),
             Contains("[predict] batch_size is at least 1. Received: 0."));
  CHECK_THAT(error_of([&] { compiled().predict(data, {.steps = 0}); }),
             Contains("[predict] steps is at least 1. Received: 0."));
}

TEST_CASE("a model must be compiled, with a loss to train") {
  const Sequential model = test::small_model();
  const TensorDataset data = test::small_data(8);
  for (const std::string caller : {"fit", "evaluate"}) {
    const std::string text = error_of([&] {
      if (caller == "fit") model.fit(data, {.verbose = 0});
      if (caller == "evaluate") model.evaluate(data, {.verbose = 0});
    });
    CHECK_THAT(text, Contains("[" + caller + "] the model is compiled"));
  }
  model.compile({.optimizer = "sgd", .layouts = on_four()});
  CHECK_THAT(error_of([&] { model.fit(data, {.verbose = 0}); }), Contains("no loss"));
  CHECK(model.predict(data, {}).size(0) == 8);
}

TEST_CASE("data that do not fit the model are refused in one line") {
  const Examples good = rows_of(test::small_data(8));
  const FitOptions quiet{.batch_size = 8, .verbose = 0};
  CHECK_THAT(fit_error(TensorDataset(good.x[0]), quiet), Contains("the dataset has labels"));
  CHECK_THAT(fit_error(TensorDataset(good.x[0], good.y[0] + 2), quiet), Contains("[0, 5)"));
  CHECK_THAT(fit_error(TensorDataset(good.x[0], good.y[0] - 4), quiet), Contains("[0, 5)"));
  at::Tensor one_wrong = good.y[0].clone();
  one_wrong[6] = 9;
  CHECK_THAT(
      fit_error(TensorDataset(good.x[0], one_wrong),
                {.batch_size = 8, .verbose = 0, .shuffle = false}),
      Contains("[labels y, sparse_softmax_cross_entropy] labels lie in [0, 5). Received: 9 in row "
               "6 of the batch (row 6 of the data)."));
  CHECK_THAT(fit_error(TensorDataset(good.x[0], at::rand({8, 5}, at::kDouble)), quiet),
             Contains("(8, 5)") && Contains("for one-hot labels use categorical_crossentropy"));
  const Sequential model = compiled();
  model.fit(TensorDataset(good), quiet);
  CHECK_THAT(error_of([&] {
               model.fit(TensorDataset(at::rand({8, 17}, at::kDouble), good.y[0]), quiet);
             }),
             Contains("hidden_1") && Contains("(8, 17)"));
}

TEST_CASE("a non-finite loss stops with step and value, before later steps") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const c10::InferenceMode inference;
  for (const double bad : {nan, inf}) {
    Examples rows = rows_of(test::small_data(40));
    rows.x[0][26][3] = bad;
    const Sequential model = compiled();
    const std::string text = error_of(
        [&] { model.fit(TensorDataset(rows), {.batch_size = 4, .verbose = 0, .shuffle = false}); });
    CHECK_THAT(text, Contains("[fit] the loss stays finite. Received: ") && Contains("nan") &&
                         Contains("epoch 1, step 7"));
  }
}

TEST_CASE("in one process a non-finite loss says where it comes from") {
  const c10::InferenceMode inference;
  Examples rows = rows_of(test::small_data(40));
  rows.x[0][26][3] = std::numeric_limits<double>::quiet_NaN();
  const FitOptions ordered{.batch_size = 4, .verbose = 0, .shuffle = false};
  const Sequential model = compiled();
  CHECK_THAT(
      error_of([&] { model.fit(TensorDataset(rows), ordered); }),
      Contains(
          "nan at epoch 1, step 7 in the partial sum of cpu:2, cpu:3: x[0] of the batch, row 2 "
          "(row 26 of the data) has infinite numbers or NaN."));
  // The step has changed nothing, so training can continue from there.
  for (const at::Tensor& weight : model.get_weights()) {
    CHECK(at::isfinite(weight).all().item<bool>());
  }
  std::vector<at::Tensor> weights = model.get_weights();
  weights[2][0][1] = std::numeric_limits<double>::infinity();
  model.set_weights(weights);
  CHECK_THAT(error_of([&] { model.fit(test::small_data(8), ordered); }),
             Contains("at epoch 1, step 1: " + model.weights()[2].path() +
                      " has infinite numbers or NaN since the previous step."));
  // With a block for each device the error names the device of the row.
  const tessera::detail::BlockPolicyScope blocks(tessera::detail::BlockPolicy::per_device);
  const Sequential apart = compiled();
  CHECK_THAT(error_of([&] { apart.fit(TensorDataset(rows), ordered); }),
             Contains("nan at epoch 1, step 7 in the partial sum of cpu:2: x[0]"));
}

TEST_CASE("errors about a row of the batch name the row of the data") {
  const c10::InferenceMode inference;
  const Examples good = rows_of(test::small_data(40));
  Examples wrong = good, bad = good;
  wrong.y[0] = good.y[0].clone();
  wrong.y[0][6] = 9;
  bad.x[0] = good.x[0].clone();
  bad.x[0][26][3] = std::numeric_limits<double>::quiet_NaN();
  for (const MeshDims& dims :
       {MeshDims{{"batch", 1}}, MeshDims{{"batch", 4}}, MeshDims{{"batch", 2}, {"model", 2}}}) {
    const auto made = [&] {
      const Sequential model = test::small_model();
      model.compile(test::small_compile(LayoutMap(create_mesh(dims))));
      return model;
    };
    const FitOptions shuffled{.batch_size = 4, .verbose = 0};
    CHECK_THAT(error_of([&] { made().fit(TensorDataset(wrong), shuffled); }),
               Contains("Received: 9 in row ") && Contains(" of the batch (row 6 of the data)."));
    CHECK_THAT(error_of([&] { made().fit(TensorDataset(bad), shuffled); }),
               Contains(" of the batch, row ") && Contains(" (row 26 of the data) has infinite"));
    CHECK_THAT(
        error_of([&] { made().evaluate(TensorDataset(wrong), {.batch_size = 4, .verbose = 0}); }),
        Contains("Received: 9 in row 2 of the batch (row 6 of the data)."));
    FitOptions validated = shuffled;
    validated.validation_data = TensorDataset(wrong);
    CHECK_THAT(error_of([&] { made().fit(TensorDataset(good), validated); }),
               Contains("Received: 9 in row 2 of the batch (row 6 of the validation data)."));
    // The batches of a stream have no numbers of rows.
    CHECK_THAT(error_of([&] { made().fit(DataPipeline(wrong).batch(4), {.verbose = 0}); }),
               Contains("Received: 9 in row 2 of the batch. To fix"));
  }
}

TEST_CASE("complex numbers are refused") {
  const at::Tensor x = at::ones({8, 18}, at::kComplexFloat), y = at::zeros({8}, at::kLong);
  const auto check_refused = [](const std::function<void()>& function, const char* where) {
    CHECK_THAT(error_of(function), Contains(where) &&
                                       Contains("numbers are real. Received: ComplexFloat") &&
                                       Contains("at::view_as_real()"));
  };
  for (const int64_t devices : {1, 2, 4}) {
    const Sequential model = test::small_model();
    model.compile(test::small_compile(LayoutMap(create_mesh({{"batch", devices}}))));
    const FitOptions quiet{.verbose = 0};
    check_refused([&] { model.fit(x, y, quiet); }, ", x] ");
    check_refused([&] { model.fit(at::real(x), x, quiet); }, ", y] ");
    check_refused([&] { model.predict(x); }, "");
    check_refused([&] { model.train_on_batch({.x = {x}, .y = {y}}); }, "");
    const GeneratorDataset stream([x, y] {
      return [x, y]() -> std::optional<Examples> { return Examples{.x = {x}, .y = {y}}; };
    });
    check_refused([&] { model.fit(stream, quiet); }, "[generator, x] ");
    const Layout layout = Layout::replicated(create_mesh({{"batch", devices}}), 2);
    check_refused([&] { pack(x, layout); }, "[pack] ");
  }
}

TEST_CASE("after an error in a step the next fit works") {
  const Examples good = rows_of(test::small_data(8));
  const Sequential model = compiled();
  const FitOptions quiet{.batch_size = 4, .verbose = 0};
  CHECK_THROWS_AS(model.fit(TensorDataset(good.x[0], good.y[0] + 5), quiet), ConfigError);
  CHECK(model.fit(TensorDataset(good), quiet).steps.size() == 2);
}

TEST_CASE("an unknown metric is refused by every fit") {
  const Sequential model = test::small_model();
  CompileOptions options = test::small_compile(on_four());
  options.metrics = {"accuracy", "acuracy"};
  model.compile(options);
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of([&] { model.fit(test::small_data(8), {.verbose = 0}); }),
               Contains("Received: \"acuracy\"") && Contains("write \"accuracy\""));
  }
}

TEST_CASE("after an error during evaluation a callback gets the metrics of training") {
  const Sequential model = compiled();
  bool heard = false;
  const LambdaCallback listener(
      {.on_train_batch_end =
           [&](int64_t, const Logs& logs) { heard = find_value(logs, "accuracy").has_value(); },
       .on_test_begin = [] { throw StateError("test", "it goes on", "a stop", "go on"); }});
  const TensorDataset data = test::small_data(8);
  CHECK_THROWS_AS(model.evaluate(data, {.verbose = 0, .callbacks = {listener}}), StateError);
  model.fit(data, {.verbose = 0, .callbacks = {listener}});
  CHECK(heard);
}

TEST_CASE("layout maps that do not fit the model are refused before training") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const auto text = [&](const std::function<void(LayoutMap&)>& change) {
    LayoutMap layouts(mesh);
    return error_of([&] {
      change(layouts);
      const Sequential model = test::small_model();
      model.compile(test::small_compile(layouts));
      model.fit(test::small_data(8), {.verbose = 0});
    });
  };
  CHECK_THAT(text([](LayoutMap& m) {
               m["hiden_1/kernel"] = {unsharded, "model"};
             }),
             Contains("hiden_1/kernel") && Contains("hidden_1/kernel"));
  CHECK_THAT(text([](LayoutMap& m) { m["hidden_1/kernel"] = {"model"}; }),
             Contains("hidden_1/kernel") && Contains("(model)"));
  CHECK_THAT(text([](LayoutMap& m) {
               m["hidden_1/kernel"] = {unsharded, "modle"};
             }),
             Contains("modle") && Contains("batch=2, model=2"));
  CHECK_THAT(text([](LayoutMap& m) {
               m["hidden_./kernel"] = {unsharded, "model"};
               m["hidden_1/.*"] = {unsharded, "model"};
             }),
             Contains("hidden_./kernel") && Contains("hidden_1/.*"));
  CHECK_THAT(text([](LayoutMap& m) { m.set_data("x", {"batch"}); }), Contains("(batch)"));
}

}  // namespace fit_errors_test
