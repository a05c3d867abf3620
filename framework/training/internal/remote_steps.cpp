#include <tessera/framework/training/internal/remote_steps.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/training/internal/batch_loop.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>

namespace tessera::detail {

void RemoteSteps::begin(const FitRun& run) {
  const auto need_steps = [](const DatasetHandle& d, const auto& steps, const char* option) {
    if (!d || !d.stream() || steps || d.stream()->steps()) return;
    throw ConfigError("fit", str(option, " tells how many batches a stream has"), "nothing",
                      "set it: steps are assigned to processes by number");
  };
  need_steps(run.data.train, run.options.steps_per_epoch, "steps_per_epoch");
  need_steps(run.data.validation, run.options.validation_steps, "validation_steps");
  MetricTracker& metrics = run.state.metrics;
  // plan() resets the metrics.
  const Json restored = metrics.restored();
  try {
    if (metrics.metrics().empty() && !run.data.train.stream()) {
      run.trainer.plan(run.data.train, {.batch_size = run.options.batch_size});
    }
  } catch (const StateError&) {
    // A user-defined train_step() reads values: metric values are averaged over rows instead.
  }
  if (!restored.is_null()) metrics.set_restored(restored);
  metrics.begin_sums();
  send(run.trainer, run.data, run.options);
}

void RemoteSteps::train(const FitRun& run) {
  const FitPosition begin = run.state.progress.position;
  const int64_t first = first_batch(begin);
  const int64_t last = *epoch_steps(run.data.train, training_batches(run.options, begin)) - first;
  const int64_t done = begin.step + run_all(run, {Phase::train, begin.epoch, begin.step, last,
                                                  begin.pass.value_or(begin.epoch), first});
  const bool pass_was_over = done == 0 && first > 0;
  if (pass_was_over || run.state.exchange.stops()) return;
  warn_of_short_data(run.state.layouts.mesh(), "fit", "steps_per_epoch", done,
                     run.options.steps_per_epoch);
}

void RemoteSteps::test(const FitRun& run) {
  const int64_t steps = *epoch_steps(run.data.validation, validation_batches(run.options));
  const int64_t done = run_all(run, {Phase::test, run.state.progress.position.epoch, 0, steps});
  warn_of_short_data(run.state.layouts.mesh(), "fit, validation", "validation_steps", done,
                     run.options.validation_steps);
}

/// Runs a range of steps, and calls the callbacks for each. Returns the number of steps done, which
/// are fewer if the data end or training is stopped. Throws as BatchLoop::next().
int64_t RemoteSteps::run_all(const FitRun& run, const StepRange& range) {
  const bool trains = range.phase == Phase::train;
  int64_t at = range.first;
  while (at < range.last && !(trains && run.state.exchange.stops())) {
    StepRange segment = range;
    segment.first = at;
    if (trains) {
      const auto next = run.callbacks.batches_to_weights();
      if (next) segment.last = std::min(range.last, at + std::max<int64_t>(1, *next));
    }
    at += run_until_read(run, segment);
    if (const int signal = stop_signal()) {
      throw interrupted(signal, trains ? "fit" : "fit, validation", range.phase,
                        position_text(range.phase, range.epoch, at));
    }
    if (at < segment.last) break;  // The data have ended.
  }
  return at - range.first;
}

/// Runs the steps [range.first, range.last), after which a callback needs the weights. Returns how
/// many were run.
int64_t RemoteSteps::run_until_read(const FitRun& run, const StepRange& range) {
  TrainingState& state = run.state;
  const bool trains = range.phase == Phase::train;
  MetricTracker& metrics = state.metrics;
  std::vector<double> losses(static_cast<size_t>(range.last - range.first));
  int64_t number = range.first;
  int64_t rows = 0;  // rows of the steps since callbacks were last called
  const auto call_callbacks = [&] {
    run.callbacks.batch_begin(range.phase, number);
    const bool all = run.callbacks.wants_batch_logs(range.phase, number);
    run.callbacks.batch_end(range.phase, number, std::exchange(rows, 0),
                            all ? metrics.logs() : Logs{{"loss", metrics.loss().value()}});
  };
  const auto add = [&](int64_t step, const StepTotals& totals) {
    metrics.add(totals);
    rows += totals.rows;
    const double value = totals.loss / static_cast<double>(std::max<int64_t>(1, totals.rows));
    losses[static_cast<size_t>(step - range.first)] = value;
    if (trains && state.finite.loss) check_finite(value, {range.epoch, step}, state.layouts.mesh());
    // Callbacks of the last step are called after the weights have been fetched.
    if (number + 1 < range.last) call_callbacks();
    ++number;
    return !(trains && state.exchange.stops()) && stop_signal() == 0;
  };
  const int64_t done = run_steps(range, add);
  if (trains) {
    losses.resize(static_cast<size_t>(done));
    std::vector<double>& steps = state.progress.history.steps;
    steps.insert(steps.end(), losses.begin(), losses.end());
    fetch(run.trainer);
    const int64_t next = range.first + done;
    state.progress.position = {range.epoch, next, range.pass, range.offset + next};
  }
  if (number == range.last) {
    --number;
    call_callbacks();
  }
  return done;
}

}  // namespace tessera::detail
