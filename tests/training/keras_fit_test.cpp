#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/keras_fit.hpp"

namespace keras_fit_test {

using namespace tessera;
using namespace tessera::detail;
using test::fit_data;
using test::FitCases;
using test::FitModels;
using test::FitRun;
using test::MakeFitRun;
using test::regression_run;

namespace {

at::Tensor labels() { return fit_data("labels", at::kLong); }
at::Tensor columns() { return labels().unsqueeze(1); }
at::Tensor one_hot() { return at::one_hot(labels(), 3).to(at::kFloat); }

MakeFitRun plain(const FitOptions& options, bool validated = false) {
  return [=](const FitModels& models, const std::string&) {
    return regression_run(models, options, validated);
  };
}

const ClassWeight class_weight = {{0, 2.0}, {2, 0.25}};

FitCases data_cases() {
  const auto classes = [](const LossChoice& loss, const MetricsChoice& metrics,
                          const MetricsChoice& weighted, const std::function<at::Tensor()>& y,
                          const FitOptions& options) {
    return [=](const FitModels& models, const std::string&) {
      return FitRun{models.classification(loss, metrics, weighted), {fit_data("x"), y()}, options};
    };
  };
  return {
      {"validation split", plain({.epochs = 3, .validation_split = 0.25})},
      {"validation split, weighted",
       [](const FitModels& models, const std::string&) {
         return FitRun{models.regression(0.1, {"mae"}),
                       {fit_data("x"), fit_data("y")},
                       {.epochs = 2, .validation_split = 0.3, .sample_weight = fit_data("weight")}};
       }},
      {"validation every 2",
       plain({.epochs = 5, .validation_batch_size = 2, .validation_freq = 2}, true)},
      {"validation at 1 and 4", plain({.epochs = 5,
                                       .validation_steps = 1,
                                       .validation_batch_size = 2,
                                       .validation_freq = {1, 4}},
                                      true)},
      {"steps", plain({.epochs = 1, .steps_per_epoch = 2})},
      {"class weight", classes("sparse_categorical_crossentropy", {"accuracy"}, {"accuracy"},
                               labels, {.epochs = 3, .class_weight = class_weight})},
      {"class weight of columns", classes("sparse_categorical_crossentropy", {"acc"}, {}, columns,
                                          {.epochs = 2, .class_weight = class_weight})},
      {"class weight of one-hot labels", classes("crossentropy", {"accuracy"}, {}, one_hot,
                                                 {.epochs = 2, .class_weight = class_weight})},
      {"sample weight", classes("crossentropy", {"accuracy"}, {"accuracy"}, labels,
                                {.epochs = 3, .sample_weight = fit_data("weight")})},
  };
}

FitCases output_cases() {
  // Three full batches.
  const auto full_batches = [](const at::Tensor& tensor) { return tensor.narrow(0, 0, 12); };
  const auto run = [=](const CompileOptions& options, int64_t epochs, bool weighted) {
    return [=](const FitModels& models, const std::string&) {
      Examples all{.x = {full_batches(fit_data("x"))},
                   .y = {full_batches(fit_data("y")), full_batches(labels())}};
      if (weighted)
        all.sample_weight = {full_batches(fit_data("weight")), full_batches(fit_data("weight_b"))};
      return FitRun{models.both(options), all, {.epochs = epochs}};
    };
  };
  return {
      {"outputs", run({.loss = {{"out", "mse"}, {"classes", "sparse_categorical_crossentropy"}},
                       .loss_weights = {{"out", 0.5}, {"classes", 2.0}},
                       .metrics = {{"classes", {"accuracy"}}, {"out", "mae"}}},
                      3, false)},
      {"outputs by list", run({.loss = {"mse", "crossentropy"},
                               .loss_weights = {1.0, 0.3},
                               .metrics = {"mae", "accuracy"},
                               .weighted_metrics = {{"classes", "accuracy"}}},
                              2, true)},
      {"outputs, one loss",
       run({.loss = {{"classes", "crossentropy"}}, .metrics = {{"classes", {"accuracy"}}}}, 2,
           false)},
  };
}

}  // namespace

TEST_CASE("fit takes Keras' data options, on every mesh") {
  test::check_fit_cases("data", data_cases());
}

TEST_CASE("models of several outputs are trained and logged as in Keras") {
  test::check_fit_cases("outputs", output_cases());
}

}  // namespace keras_fit_test
