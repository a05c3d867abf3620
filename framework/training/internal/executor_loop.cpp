#include <tessera/framework/training/internal/executor_loop.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>

namespace tessera::detail {
namespace {

/// Runs the steps [range.first, range.last), after which a callback needs the weights; returns how
/// many were run.
int64_t run_range(Trainer& trainer, TrainingState& state, const StepRange& range,
                  const CallbackList& callbacks) {
  const bool trains = range.phase == Phase::train;
  MetricTracker& metrics = state.metrics;
  std::vector<double> losses(static_cast<size_t>(range.last - range.first));
  int64_t number = range.first;
  int64_t rows = 0;  // rows of the steps since callbacks were last called
  const auto call_callbacks = [&] {
    callbacks.batch_begin(range.phase, number);
    const bool all = callbacks.wants_batch_logs(range.phase, number);
    callbacks.batch_end(range.phase, number, std::exchange(rows, 0),
                        all ? metrics.logs() : Logs{{"loss", metrics.loss().value()}});
  };
  const auto add = [&](int64_t step, const StepTotals& totals) {
    metrics.add(totals);
    rows += totals.rows;
    const double value = totals.loss / static_cast<double>(std::max<int64_t>(1, totals.rows));
    losses[static_cast<size_t>(step - range.first)] = value;
    if (trains && state.must_be_finite) {
      check_finite(value, {range.epoch, step}, state.layouts.mesh());
    }
    // Callbacks of the last step are called after the weights have been fetched.
    if (number + 1 < range.last) call_callbacks();
    ++number;
    return !(trains && state.exchange.stops()) && stop_signal() == 0;
  };
  const int64_t done = state.executor->run(range, add);
  if (trains) {
    losses.resize(static_cast<size_t>(done));
    std::vector<double>& steps = state.progress.history.steps;
    steps.insert(steps.end(), losses.begin(), losses.end());
    state.executor->fetch(trainer.model());
    const int64_t next = range.first + done;
    state.progress.position = {range.epoch, next, range.pass, range.offset + next};
  }
  if (number == range.last) {
    --number;
    call_callbacks();
  }
  return done;
}

}  // namespace

void begin_executor(Trainer& trainer, TrainingState& state, const FitData& data,
                    const FitOptions& options) {
  const auto need_steps = [](const DatasetHandle& d, const auto& steps, const char* option) {
    if (!d || !d.stream() || steps || d.stream()->steps()) return;
    throw ConfigError("fit", str(option, " tells how many batches a stream has"), "nothing",
                      "set it: steps are assigned to processes by number");
  };
  need_steps(data.train, options.steps_per_epoch, "steps_per_epoch");
  need_steps(data.validation, options.validation_steps, "validation_steps");
  // plan() resets the metrics.
  const Json restored = state.metrics.restored();
  try {
    // Chooses the metrics whose totals the steps report.
    if (state.metrics.metrics().empty() && !data.train.stream()) {
      trainer.plan(data.train, {.batch_size = options.batch_size});
    }
  } catch (const StateError&) {
    // A user-defined train_step() reads values: metric values are averaged over rows instead.
  }
  if (!restored.is_null()) state.metrics.set_restored(restored);
  state.metrics.begin_sums();
  state.executor->begin(trainer.model(), data, options);
}

int64_t run_with_executor(Trainer& trainer, TrainingState& state, const StepRange& range,
                          const CallbackList& callbacks) {
  const bool trains = range.phase == Phase::train;
  int64_t at = range.first;
  while (at < range.last && !(trains && state.exchange.stops())) {
    StepRange segment = range;
    segment.first = at;
    if (trains) {
      const auto next = callbacks.batches_to_weights();
      if (next) segment.last = std::min(range.last, at + std::max<int64_t>(1, *next));
    }
    at += run_range(trainer, state, segment, callbacks);
    if (const int signal = stop_signal()) {
      throw interrupted(signal, trains ? "fit" : "fit, validation", range.phase,
                        position_text(range.phase, range.epoch, at));
    }
    if (at < segment.last) break;  // The data have ended.
  }
  return at - range.first;
}

}  // namespace tessera::detail
