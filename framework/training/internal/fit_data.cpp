#include <tessera/framework/training/internal/fit_data.hpp>

#include <algorithm>
#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/internal/data_views.hpp>

namespace tessera::detail {
namespace {

void check_numbers(const FitOptions& options) {
  check_positive("fit", "batch_size", options.batch_size);
  check_positive("fit", "epochs", options.epochs);
  check_positive("fit", "steps_per_epoch", options.steps_per_epoch);
  check_positive("fit", "validation_steps", options.validation_steps);
  check_positive("fit", "validation_batch_size", options.validation_batch_size);
  check_positive("fit", "validation_freq", options.validation_freq.every());
  check_positive("fit", "elastic.min_processes", options.elastic.min_processes);
  check_positive("fit", "elastic.snapshot_every", options.elastic.snapshot_every);
  if (options.initial_epoch < 0) {
    throw ConfigError("fit", "initial_epoch is not negative", str(options.initial_epoch),
                      "pass how many epochs are done");
  }
  if (!(options.validation_split >= 0 && options.validation_split < 1)) {
    throw ConfigError("fit", "validation_split lies in [0, 1)", str(options.validation_split),
                      "pass the fraction of the rows to validate with");
  }
}

/// Splits the rows: the last `share` of them is for validation.
/// Whether the loss of a model with one output has class ids as labels, whatever their shape.
bool has_sparse_loss(const CompileOptions& compiled, const std::vector<std::string>& outputs) {
  if (outputs.size() != 1) return false;
  const LossChoice loss = compiled.loss.values("loss", outputs, {})[0];
  if (!loss || loss.name() == "crossentropy" || loss.name() == "ce") return false;
  return loss.loss({}, {})->class_name() == "SparseCategoricalCrossentropy";
}

FitData split(const DatasetHandle& data, double share) {
  const auto& rows = data.rows("fit, validation_split");
  const int64_t size = rows->size();
  const auto first = static_cast<int64_t>(std::floor(static_cast<double>(size) * (1.0 - share)));
  if (first > 0 && first < size) {
    return {.train = row_range(rows, 0, first), .validation = row_range(rows, first, size)};
  }
  throw ConfigError("fit", "validation_split leaves rows on both sides",
                    str(share, " of ", size, " rows"), "pass more data or another fraction");
}

}  // namespace

void check_positive(const std::string& caller, const std::string& argument, int64_t value) {
  if (value >= 1) return;
  throw ConfigError(caller, argument + " is at least 1", str(value), "give a positive number");
}

void check_positive(const std::string& caller, const std::string& argument,
                    const std::optional<int64_t>& value) {
  if (value) check_positive(caller, argument, *value);
}

void check_data(const std::string& caller, const DatasetHandle& data) {
  if (data && (data.stream() || data->size() > 0)) return;
  throw ConfigError(caller, "the dataset has rows", data ? "an empty dataset" : "no dataset",
                    "pass data to work on");
}

void check_has_end(const std::string& caller, const DatasetHandle& data, const std::string& option,
                   const std::optional<int64_t>& steps) {
  if (!data.stream() || !data.stream()->endless() || steps) return;
  throw ConfigError(caller, option + " is required for an endless stream", "none",
                    "pass " + option);
}

BatchLoaderOptions training_batches(const FitOptions& options, const FitPosition& position,
                                    const LayoutMap& layouts) {
  BatchLoaderOptions batches{.batch_size = options.batch_size,
                             .shuffle = options.shuffle,
                             .seed = {global_seed(), 0},
                             .epoch = position.pass.value_or(position.epoch),
                             .first_step = position.batch.value_or(position.step),
                             .steps = options.steps_per_epoch,
                             .layouts = layouts};
  if (batches.steps) *batches.steps += first_batch(position);
  return batches;
}

int64_t first_batch(const FitPosition& position) {
  return position.batch.value_or(position.step) - position.step;
}

int64_t passes_begun(const FitPosition& position) {
  const bool inside = position.batch.value_or(position.step) > 0;
  return position.pass.value_or(position.epoch) + (inside ? 1 : 0);
}

FitPosition next_epoch(const FitPosition& position, const FitOptions& options,
                       const std::optional<int64_t>& batches_in_pass) {
  const int64_t pass = position.pass.value_or(position.epoch);
  const int64_t batch = position.batch.value_or(position.step);
  const bool asked_for = options.steps_per_epoch && position.step == *options.steps_per_epoch;
  if (asked_for && (!batches_in_pass || batch < *batches_in_pass)) {
    return {.epoch = position.epoch + 1, .pass = pass, .batch = batch};
  }
  return {.epoch = position.epoch + 1, .pass = pass + 1, .batch = 0};
}

std::optional<int64_t> told_steps(const DatasetHandle& data, const BatchLoaderOptions& options) {
  const std::optional<int64_t> steps = epoch_steps(data, options);
  return options.steps ? options.steps : steps;
}

BatchLoaderOptions validation_batches(const FitOptions& options, const LayoutMap& layouts) {
  return {.batch_size = options.validation_batch_size.value_or(options.batch_size),
          .steps = options.validation_steps,
          .layouts = layouts};
}

FitData fit_data(const DatasetHandle& data, const FitOptions& options,
                 const CompileOptions& compiled, const std::vector<std::string>& outputs) {
  check_data("fit", data);
  check_numbers(options);
  check_has_end("fit", data, "steps_per_epoch", options.steps_per_epoch);
  FitData all{.train = data, .validation = options.validation_data};
  if (options.sample_weight.defined()) {
    all.train = with_sample_weight(data, options.sample_weight, "fit");
  }
  if (all.validation) {
    check_data("fit, validation_data", all.validation);
    check_has_end("fit", all.validation, "validation_steps", options.validation_steps);
  } else if (options.validation_split > 0) {
    all = split(all.train, options.validation_split);
  }
  if (!options.class_weight.empty()) {
    all.train =
        with_class_weight(all.train, options.class_weight, has_sparse_loss(compiled, outputs));
  }
  if (options.steps_per_epoch) all.train = continued(all.train);
  return all;
}

Shapes batch_shapes(const DatasetHandle& data) {
  Shapes shapes = data.input_shapes();
  for (Shape& shape : shapes) shape.insert(shape.begin(), -1);
  return shapes;
}

}  // namespace tessera::detail
