// Keras' example "Timeseries forecasting for weather prediction": an LSTM reads a window of the
// past and predicts one of the quantities at a future time. All numeric columns of the file are
// inputs.

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/data_program.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/sample_data.hpp"

namespace {

using namespace tessera;

/// The windows of the series, in rows, with the example's defaults.
struct Windows {
  int64_t past = 720;   ///< length of a window
  int64_t future = 72;  ///< distance from a window's end to the predicted row
  int64_t step = 6;     ///< stride of the rows in a window
  std::string target = "T (degC)";
  double split = 0.715;  ///< fraction of the series used for training
};

Table numbers_of(const std::string& path) {
  Table table = datasets::read_csv(path);
  for (const std::string& name : std::vector(table.names())) {
    if (table[name].is_text()) table.pop(name);
  }
  return table;
}

/// Returns windows of `series`, and of `target` the row `past + future` after each window's start.
DataPipeline windows_of(const at::Tensor& series, const at::Tensor& target, const Windows& w,
                        const app::CommonOptions& common) {
  const int64_t ahead = w.past + w.future;
  return timeseries_dataset_from_array(series, target.slice(0, ahead), w.past / w.step,
                                       {.sampling_rate = w.step, .batch_size = common.batch_size});
}

int run(int argc, char** argv) {
  app::DataProgram program("timeseries",
                           "Forecasts a column of a time series, like Keras' example of weather "
                           "prediction.",
                           "a CSV file with a header, a row for each time", app::sample_weather);
  program.common().batch_size = 256;
  program.common().epochs = 10;
  Windows w;
  program.options().add(
      {"past", "Data", "number of rows that a window spans", app::integer(w.past, 1)});
  program.options().add({"future", "Data",
                         "number of rows from a window's end to the predicted one",
                         app::integer(w.future, 0)});
  program.options().add(
      {"step", "Data", "stride of the rows in a window", app::integer(w.step, 1)});
  program.options().add({"target", "Data", "the column to predict", app::text(w.target, "COLUMN")});
  program.options().add(
      {"split", "Data", "fraction of the rows used for training", app::fraction(w.split)});
  const std::optional<app::Setup> setup = program.start(argc, argv);
  if (!setup) return 0;

  const Table table = numbers_of(program.data());
  table[w.target];
  const auto target_column = std::find(table.names().begin(), table.names().end(), w.target);
  const at::Tensor all = table.matrix().to(at::kDouble);
  const auto split = static_cast<int64_t>(w.split * static_cast<double>(all.size(0)));
  const int64_t ahead = w.past + w.future;
  if (w.past < w.step || split < 1 || all.size(0) - split <= 2 * ahead) {
    throw ConfigError("--past, --future, --step, --split",
                      "windows of at least a step, and more than " + std::to_string(2 * ahead) +
                          " rows to validate with",
                      std::to_string(all.size(0) - split) + " rows",
                      "give more rows, or shorter windows");
  }
  // Normalize by mean and standard deviation of the training rows.
  const at::Tensor seen = all.slice(0, 0, split);
  const at::Tensor values = ((all - seen.mean(0)) / seen.std(0, /*unbiased=*/false)).to(at::kFloat);
  const at::Tensor target = values.select(1, target_column - table.names().begin());
  const DataPipeline training =
      windows_of(values.slice(0, 0, split), target.slice(0, 0, split + ahead), w, program.common());
  const DataPipeline validation = windows_of(values.slice(0, split, all.size(0) - ahead),
                                             target.slice(0, split), w, program.common());

  const Sequential model({Input({w.past / w.step, values.size(1)}), LSTM(32), Dense(1)});
  model.compile({.optimizer = Adam(program.learning_rate(1e-3)),
                 .loss = "mse",
                 .metrics = {"mae"},
                 .layouts = setup->layouts});
  return program.train(model, training, validation);
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
