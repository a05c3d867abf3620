#include <cmath>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/data_views.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

BatchLoaderOptions training_batches(const FitOptions& options, const FitPosition& position,
                                    const LayoutMap& layouts) {
  return {.batch_size = options.batch_size,
          .shuffle = options.shuffle,
          .seed = {global_seed(), 0},
          .epoch = position.epoch,
          .first_step = position.step,
          .steps = options.steps_per_epoch,
          .layouts = layouts};
}

BatchLoaderOptions validation_batches(const FitOptions& options, const LayoutMap& layouts) {
  return {.batch_size = options.validation_batch_size.value_or(options.batch_size),
          .steps = options.validation_steps,
          .layouts = layouts};
}

/// Where a callback wants fit to go on has to be inside the data.
void check_position(const FitPosition& position, int64_t epochs, std::optional<int64_t> steps) {
  if (position.epoch >= epochs || !steps || position.step <= *steps) return;
  throw ConfigError("fit", str("the run goes on inside an epoch, of ", *steps, " steps"),
                    str("a position at epoch ", position.epoch + 1, " with ", position.step,
                        " steps done"),
                    "give data and options of the run that was interrupted");
}

void check_finite(double loss, int64_t epoch, int64_t step) {
  if (std::isfinite(loss)) return;
  throw StateError("fit", "the loss stays finite", str(loss, " at epoch ", epoch + 1, ", step ",
                   step + 1), "lower the learning rate, or look for bad values in the data");
}

}  // namespace

History Model::fit(const DatasetRef& given, const FitOptions& options) {
  Training& state = training("fit");
  // A callback may compile the model anew.
  const std::shared_ptr<Training> kept = training_;
  const FitData data = fit_data(given, options);
  const auto steps = epoch_steps(data.train, training_batches(options, {}, {}));
  const CallbackList callbacks(
      options.callbacks, *this, state.layouts.mesh(),
      {.epochs = options.epochs, .steps = steps, .verbose = options.verbose});
  const bool must_be_finite = !callbacks.accepts_non_finite_loss();
  if (!state.placed) ensure_placed(batch_shapes(data.train));
  state.begin_fit(options.initial_epoch);
  state.agree([&] { callbacks.begin(Phase::train); });
  check_position(state.position, options.epochs, steps);
  state.history.data = data.train.name();
  Logs& logs = state.epoch_logs;
  for (int64_t epoch = state.position.epoch; epoch < options.epochs && !state.stop; ++epoch) {
    state.agree([&] { callbacks.epoch_begin(epoch); });
    state.begin_epoch();
    BatchLoader loader(data.train, training_batches(options, state.position, state.layouts));
    state.run(Phase::train, loader, callbacks, [&](Examples&& examples, int64_t step) {
      const double loss = state.train(*this, std::move(examples));
      if (must_be_finite) check_finite(loss, epoch, step);
      state.history.steps.push_back(loss);
      state.position = {epoch, step + 1};
    });
    logs = state.logs();
    if (!state.stop) state.position = {.epoch = epoch + 1};
    if (data.validation && options.validation_freq.due(epoch)) {
      BatchLoader batches(data.validation, validation_batches(options, state.layouts));
      for (const auto& [name, value] : state.evaluate(*this, batches, callbacks)) {
        logs.emplace_back("val_" + name, value);
      }
    }
    state.end_epoch(epoch, callbacks);
  }
  const bool trained = state.optimizer && state.optimizer->built();
  if (trained) state.optimizer->finalize_variable_values(trainable_weights());
  state.agree([&] { callbacks.end(Phase::train, logs); });
  return state.history;
}

void Model::Training::begin_fit(int64_t epoch) {
  history = {};
  epoch_logs.clear();
  epoch_ends = false;
  stop = false;
  position = {.epoch = epoch};
  restored = nullptr;
}

void Model::Training::end_epoch(int64_t epoch, const CallbackList& callbacks) {
  epoch_ends = !stop;
  agree([&] { callbacks.epoch_end(epoch, epoch_logs); });
  epoch_ends = false;
  history.append(epoch, epoch_logs);
}

Logs Model::Training::evaluate(Model& model, BatchLoader& loader, const CallbackList& callbacks) {
  agree([&] { callbacks.begin(Phase::test); });
  reset_metrics();
  run(Phase::test, loader, callbacks,
      [&](Examples&& examples, int64_t) { test(model, std::move(examples)); });
  const Logs values = logs();
  agree([&] { callbacks.end(Phase::test, values); });
  return values;
}

Logs Model::evaluate(const DatasetRef& given, const EvaluateOptions& options) {
  Training& state = training("evaluate");
  const std::shared_ptr<Training> kept = training_;
  check_data("evaluate", given);
  check_positive("evaluate", "batch_size", options.batch_size);
  check_positive("evaluate", "steps", options.steps);
  check_has_end("evaluate", given, "steps", options.steps);
  const DatasetRef data = options.sample_weight.defined()
                              ? with_sample_weight(given, options.sample_weight, "evaluate")
                              : given;
  const BatchLoaderOptions batches{
      .batch_size = options.batch_size, .steps = options.steps, .layouts = state.layouts};
  const CallbackList callbacks(options.callbacks, *this, state.layouts.mesh(),
                               {.steps = epoch_steps(data, batches), .verbose = options.verbose});
  if (!state.placed) ensure_placed(batch_shapes(data));
  BatchLoader loader(data, batches);
  return state.evaluate(*this, loader, callbacks);
}

}  // namespace tessera
