#include <tessera/tessera.hpp>

#include <cmath>

#include <tessera/framework/training/callbacks/internal/python_repr.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_fit.hpp"

namespace keras_callbacks_test {

using namespace tessera;
using namespace tessera::detail;
using test::fit_data;
using test::FitCases;
using test::FitModels;
using test::FitRun;
using test::MakeFitRun;
using test::regression_run;

namespace {

MakeFitRun stopping(int64_t epochs, EarlyStoppingOptions options) {
  options.verbose = 1;
  return [=](const FitModels& models, const std::string&) {
    return regression_run(models, {.epochs = epochs, .callbacks = {EarlyStopping(options)}}, true);
  };
}

MakeFitRun reducing(ReduceLROnPlateauOptions options) {
  options.verbose = 1;
  return [=](const FitModels& models, const std::string&) {
    return regression_run(models, {.epochs = 7, .callbacks = {ReduceLROnPlateau(options)}}, true);
  };
}

MakeFitRun scheduling(const FitOptions& options,
                      const std::function<double(int64_t, double)>& schedule) {
  return [=](const FitModels& models, const std::string&) {
    FitOptions all = options;
    all.callbacks = {LearningRateScheduler(schedule, {.verbose = 1})};
    return regression_run(models, all, false);
  };
}

MakeFitRun logging(FitOptions options, const CSVLoggerOptions& log_options, bool validated = false,
                   const std::string& before = "") {
  return [=](const FitModels& models, const std::string& log) mutable {
    if (!before.empty()) test::write_file(log, before);
    options.callbacks = {CSVLogger(log, log_options)};
    return regression_run(models, options, validated);
  };
}

/// Logs the weights that callbacks after it would save.
struct WeightLog : Callback {
  void on_epoch_end(int64_t, Logs& logs) override {
    for (const Variable& weight : model().weights()) {
      if (weight.path() != "out/bias") continue;
      logs.emplace_back("bias", weight.value().full().item<double>());
    }
  }
};

MakeFitRun swapping(bool swap_on_epoch, bool scaled = false) {
  return [=](const FitModels& models, const std::string&) {
    const SGD average(0.1, {.use_ema = true, .ema_momentum = 0.9});
    const OptimizerHandle optimizer =
        scaled ? LossScaleOptimizer(average, {.initial_scale = 4}) : OptimizerHandle(average);
    return FitRun{models.regression(optimizer),
                  {fit_data("x"), fit_data("y")},
                  {.epochs = 4,
                   .callbacks = {SwapEMAWeights({.swap_on_epoch = swap_on_epoch}), WeightLog()},
                   .validation_data = {fit_data("x_val"), fit_data("y_val")},
                   .validation_freq = 2}};
  };
}

const FitCases& callback_cases() {
  static const FitCases cases = {
      {"stop", stopping(8, {.patience = 2})},
      {"stop and restore", stopping(8, {.patience = 1, .restore_best_weights = true})},
      {"stop late", stopping(8, {.patience = 1, .start_from_epoch = 4})},
      {"stop at delta", stopping(8, {.monitor = "loss", .min_delta = 0.05, .patience = 1})},
      {"stop at baseline",
       stopping(
           8, {.monitor = "loss", .patience = 3, .baseline = 0.01, .restore_best_weights = true})},
      {"stop at maximum", stopping(8, {.monitor = "loss", .patience = 2, .mode = "max"})},
      {"restore at the end",
       stopping(2, {.monitor = "loss", .patience = 9, .restore_best_weights = true})},
      {"reduce", reducing({.patience = 1})},
      {"reduce and cool", reducing({.factor = 0.5, .patience = 1, .cooldown = 2})},
      {"reduce to a minimum", reducing({.factor = 0.3, .patience = 1, .min_lr = 0.02})},
      {"reduce at delta",
       reducing({.monitor = "loss", .factor = 0.25, .patience = 2, .min_delta = 0.03})},
      {"schedule", scheduling({.epochs = 4},
                              [](int64_t epoch, double rate) {
                                return rate * std::pow(0.1, static_cast<double>(epoch));
                              })},
      {"initial epoch",
       scheduling({.epochs = 4, .initial_epoch = 2},
                  [](int64_t epoch, double) { return 0.5 / static_cast<double>(epoch + 1); })},
      {"swap", swapping(false)},
      {"swap on epoch", swapping(true)},
      {"swap inside a loss scale", swapping(true, /*scaled=*/true)},
      {"terminate",
       [](const FitModels& models, const std::string&) {
         return FitRun{models.regression(1e20),
                       {fit_data("x"), fit_data("y")},
                       {.epochs = 4, .callbacks = {TerminateOnNaN()}}};
       }},
      {"log", logging({.epochs = 2}, {}, false, "gone\n")},
      {"log, validated late", logging({.epochs = 3, .validation_freq = 2}, {}, true)},
      {"log, separated", logging({.epochs = 2, .validation_split = 0.3}, {.separator = ";"})},
      {"log, appended", logging({.epochs = 2}, {.append = true}, false, "epoch,loss\r\n0,1.0\r\n")},
  };
  return cases;
}

}  // namespace

TEST_CASE("callbacks behave and print as in Keras, on every mesh") {
  test::check_fit_cases("callbacks", callback_cases());
}

TEST_CASE("numbers are written as Python writes them") {
  const Json golden = read_json_file(test::golden_path("keras_callbacks.json").string());
  for (const Json& number : golden.at("numbers")) {
    CHECK(python_repr(number[0].get<double>()) == number[1].get<std::string>());
  }
  CHECK(python_repr(std::nan("")) == "nan");
  CHECK(python_repr(-HUGE_VAL) == "-inf");
}

}  // namespace keras_callbacks_test
