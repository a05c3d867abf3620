#include <tessera/framework/training/internal/fit_loop.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/training/internal/elastic_fit.hpp>

namespace tessera::detail {
namespace {

/// Throws ConfigError if a callback resumes fit at a position outside the data.
void check_position(const FitPosition& position, const DatasetHandle& data,
                    const FitOptions& options) {
  const int64_t first = first_batch(position);
  BatchLoaderOptions batches = training_batches(options, position);
  batches.first_step = 0;
  const auto last = epoch_steps(data, batches);
  if (position.epoch >= options.epochs || !last || first + position.step <= *last) return;
  throw ConfigError(
      "fit",
      str("the run resumes inside an epoch of ", std::max<int64_t>(0, *last - first), " steps"),
      str("a position at epoch ", position.epoch + 1, " with ", position.step, " steps done"),
      "pass the data and options of the interrupted run");
}

}  // namespace

Logs evaluated(TrainingState& state, const CallbackList& callbacks,
               const std::function<void()>& pass) {
  state.exchange.do_on_all_ranks([&] { callbacks.begin(Phase::test); });
  state.reset_values();
  pass();
  const Logs values = state.metrics.logs();
  state.exchange.do_on_all_ranks([&] { callbacks.end(Phase::test, values); });
  return values;
}

void FitLoop::run() {
  const auto cleanup = c10::make_scope_exit([this] { state_.finite = {}; });
  // Ended only here, since callbacks of an interrupted run save these sums.
  const auto sums = c10::make_scope_exit([this] { state_.metrics.end_sums(); });
  try {
    if (state_.elastic) {
      run_elastic(*state_.elastic);
    } else {
      begin();
      run_epochs();
    }
  } catch (const Interrupted&) {
    // Those that go on without this process save for it.
    if (!state_.elastic || !state_.elastic->has_left()) run_.callbacks.interrupt();
    steps_->fail("the fit was interrupted");
    throw;
  } catch (const std::exception& error) {
    steps_->fail(error.what());
    throw;
  }
}

void FitLoop::begin() {
  const OptimizerHandle& optimizer = state_.optimizer();
  // A fit starts the data over, in an order of its own.
  const int64_t passes = passes_begun(state_.progress.position);
  state_.progress = {};
  state_.losses.clear();
  state_.progress.position = {.epoch = run_.options.initial_epoch,
                              .pass = std::max(run_.options.initial_epoch, passes),
                              .batch = 0};
  state_.exchange.set_stop(false);
  state_.metrics.forget_restored();
  state_.finite.loss = !run_.callbacks.accepts_non_finite_loss();
  state_.finite.gradients = state_.finite.loss && !(optimizer && optimizer->scales_loss());
  // Drops non-finite gradients of steps before this fit.
  if (optimizer) optimizer->reducer().take_non_finite(/*all=*/true);
  state_.exchange.do_on_all_ranks([&] { run_.callbacks.begin(Phase::train); });
}

void FitLoop::run_elastic(ElasticFit& elastic) {
  while (true) {
    try {
      elastic.meet();
      if (elastic.is_complete()) return;
      elastic.start([this] { begin(); });
      run_epochs();
      return elastic.end();
    } catch (const CommError& error) {
      elastic.recover(error);
    }
  }
}

void FitLoop::run_epochs() {
  FitProgress& progress = state_.progress;
  check_position(progress.position, run_.data.train, run_.options);
  progress.history.data = run_.data.train.name();
  steps_->begin(run_);
  for (int64_t epoch = progress.position.epoch; epoch < run_.options.epochs; ++epoch) {
    if (state_.exchange.stops()) break;
    state_.exchange.do_on_all_ranks([&] { run_.callbacks.epoch_begin(epoch); });
    state_.metrics.begin_epoch(progress.position.step);
    const auto start = std::chrono::steady_clock::now();
    train_epoch(epoch);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    end_epoch(taken.count());
  }
  const OptimizerHandle& optimizer = state_.optimizer();
  if (optimizer && optimizer->built()) {
    optimizer->finalize_variable_values(run_.trainer.layer().trainable_weights());
  }
  state_.exchange.do_on_all_ranks([&] { run_.callbacks.end(Phase::train, progress.epoch_logs); });
  steps_->end(progress.history);
}

void FitLoop::train_epoch(int64_t epoch) {
  FitPosition& position = state_.progress.position;
  steps_->train(run_);
  const bool reads_on = position.step == 0 && position.batch.value_or(0) > 0;
  if (!reads_on || state_.exchange.stops()) return;
  // The pass ended with the epoch before, which read all that was asked for.
  position = {.epoch = epoch, .pass = passes_begun(position), .batch = 0};
  steps_->train(run_);
}

/// Returns the number of batches in a pass over the training data, if known.
std::optional<int64_t> FitLoop::batches_in_pass() const {
  return epoch_steps(run_.data.train, {.batch_size = run_.options.batch_size});
}

/// Adds the rates of an epoch that took some seconds to its logs.
void FitLoop::add_rates(double seconds, Logs& logs) const {
  if (!run_.options.peak_flops || !(seconds > 0)) return;
  const double rows = static_cast<double>(state_.metrics.loss().rows()) / seconds;
  const double flops = run_.flops_per_row * rows;
  logs.emplace_back("rows_per_second", rows);
  logs.emplace_back("flops_per_second", flops);
  const double most = *run_.options.peak_flops * static_cast<double>(state_.layouts.mesh().size());
  if (most > 0) logs.emplace_back("mfu", flops / most);
}

void FitLoop::end_epoch(double seconds) {
  FitProgress& progress = state_.progress;
  const int64_t epoch = progress.position.epoch;
  const FitPosition trained = progress.position;
  const Json totals = state_.metrics.totals();
  progress.epoch_logs = state_.metrics.logs_of(totals);
  add_rates(seconds, progress.epoch_logs);
  if (!state_.exchange.stops())
    progress.position = next_epoch(trained, run_.options, batches_in_pass());
  if (run_.data.validation && run_.options.validation_freq.due(epoch)) {
    const MetricSums on_devices = state_.metrics.sums();
    try {
      const Logs values = evaluated(state_, run_.callbacks, [&] { steps_->test(run_); });
      for (const auto& [name, value] : values) {
        progress.epoch_logs.emplace_back("val_" + name, value);
      }
    } catch (const Interrupted&) {
      // A resumed run repeats the validation, at the end of the epoch with these metrics.
      progress.position = trained;
      state_.metrics.set_restored(totals, on_devices);
      state_.metrics.begin_epoch(trained.step);
      throw;
    }
  }
  progress.epoch_ends = !state_.exchange.stops();
  state_.exchange.do_on_all_ranks([&] { run_.callbacks.epoch_end(epoch, progress.epoch_logs); });
  progress.epoch_ends = false;
  progress.history.append(epoch, progress.epoch_logs);
}

}  // namespace tessera::detail
