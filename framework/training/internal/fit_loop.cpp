#include <tessera/framework/training/internal/fit_loop.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/training/internal/batch_loop.hpp>
#include <tessera/framework/training/internal/executor_loop.hpp>
#include <tessera/framework/training/internal/row_errors.hpp>

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

/// Calls `pass` between on_test_begin and on_test_end of the callbacks; returns its logs.
template <class Pass>
Logs tested(TrainingState& state, const CallbackList& callbacks, const Pass& pass) {
  state.exchange.do_on_all_ranks([&] { callbacks.begin(Phase::test); });
  state.losses.clear();
  state.metrics.reset();
  pass();
  const Logs values = state.metrics.logs();
  state.exchange.do_on_all_ranks([&] { callbacks.end(Phase::test, values); });
  return values;
}

}  // namespace

Logs evaluated(const std::string& caller, StepRunner& steps, TrainingState& state,
               BatchLoader& loader, const CallbackList& callbacks,
               const std::optional<int64_t>& asked_for) {
  return tested(state, callbacks, [&] {
    BatchLoop batches(caller, Phase::test, state, callbacks, loader, asked_for);
    while (std::optional<Examples> examples = batches.next()) {
      try {
        steps.test(std::move(*examples), batches.signature());
      } catch (const Error&) {
        const bool validates = caller == "fit, validation";
        rethrow_with_row(loader, batches.step(), state.layouts.mesh(),
                         validates ? "the validation data" : "the data");
      }
    }
  });
}

FitLoop::FitLoop(Trainer& trainer, TrainingState& state, const FitData& data,
                 const FitOptions& options, const CallbackList& callbacks)
    : trainer_(trainer),
      state_(state),
      data_(data),
      options_(options),
      callbacks_(callbacks),
      steps_(trainer, state) {}

void FitLoop::run() {
  const auto cleanup = c10::make_scope_exit(
      [this] { state_.must_be_finite = state_.gradients_must_be_finite = false; });
  // Ended only here, since callbacks of an interrupted run save these sums.
  const auto sums = c10::make_scope_exit([this] { state_.metrics.end_sums(); });
  try {
    run_epochs();
  } catch (const Interrupted&) {
    callbacks_.interrupt();
    if (state_.executor) state_.executor->fail("the fit was interrupted");
    throw;
  } catch (const std::exception& error) {
    if (state_.executor) state_.executor->fail(error.what());
    throw;
  }
}

void FitLoop::begin() {
  const OptimizerHandle& optimizer = state_.optimizer();
  // A fit starts the data over, in an order of its own.
  const int64_t passes = passes_begun(state_.progress.position);
  state_.progress = {};
  state_.losses.clear();
  state_.progress.position = {.epoch = options_.initial_epoch,
                              .pass = std::max(options_.initial_epoch, passes),
                              .batch = 0};
  state_.exchange.set_stop(false);
  state_.metrics.forget_restored();
  state_.must_be_finite = !callbacks_.accepts_non_finite_loss();
  state_.gradients_must_be_finite =
      state_.must_be_finite && !(optimizer && optimizer->scales_loss());
  // Drops non-finite gradients of steps before this fit.
  if (optimizer) optimizer->reducer().take_non_finite(/*all=*/true);
  state_.exchange.do_on_all_ranks([&] { callbacks_.begin(Phase::train); });
}

void FitLoop::run_epochs() {
  begin();
  FitProgress& progress = state_.progress;
  check_position(progress.position, data_.train, options_);
  progress.history.data = data_.train.name();
  if (state_.executor) begin_executor(trainer_, state_, data_, options_);
  for (int64_t epoch = progress.position.epoch; epoch < options_.epochs; ++epoch) {
    if (state_.exchange.stops()) break;
    state_.exchange.do_on_all_ranks([&] { callbacks_.epoch_begin(epoch); });
    state_.metrics.begin_epoch(progress.position.step);
    train_epoch(epoch);
    end_epoch();
  }
  const OptimizerHandle& optimizer = state_.optimizer();
  if (optimizer && optimizer->built()) {
    optimizer->finalize_variable_values(trainer_.layer().trainable_weights());
  }
  state_.exchange.do_on_all_ranks([&] { callbacks_.end(Phase::train, progress.epoch_logs); });
  if (state_.executor) state_.executor->end(progress.history);
}

void FitLoop::train_epoch(int64_t epoch) {
  FitPosition& position = state_.progress.position;
  const auto train = [&] { state_.executor ? train_with_executor() : train_batches(epoch); };
  train();
  const bool reads_on = position.step == 0 && position.batch.value_or(0) > 0;
  if (!reads_on || state_.exchange.stops()) return;
  // The pass ended with the epoch before, which read all that was asked for.
  position = {.epoch = epoch, .pass = passes_begun(position), .batch = 0};
  train();
}

void FitLoop::train_batches(int64_t epoch) {
  FitProgress& progress = state_.progress;
  const FitPosition begin = progress.position;
  BatchLoader loader(data_.train, training_batches(options_, begin, state_.layouts));
  BatchLoop batches("fit", Phase::train, state_, callbacks_, loader, options_.steps_per_epoch,
                    begin.step);
  while (std::optional<Examples> examples = batches.next()) {
    try {
      steps_.train(std::move(*examples), batches.signature(),
                   [&progress](double loss) { progress.history.steps.push_back(loss); });
    } catch (const Error&) {
      rethrow_with_row(loader, first_batch(begin) + batches.step(), state_.layouts.mesh(),
                       "the data");
    }
    const int64_t done = batches.step() + 1;
    progress.position = {epoch, done, begin.pass.value_or(epoch), first_batch(begin) + done};
  }
}

void FitLoop::train_with_executor() {
  const FitPosition begin = state_.progress.position;
  const int64_t first = first_batch(begin);
  const int64_t last = *epoch_steps(data_.train, training_batches(options_, begin)) - first;
  const StepRange range{
      Phase::train, begin.epoch, begin.step, last, begin.pass.value_or(begin.epoch), first};
  const int64_t done = begin.step + run_with_executor(trainer_, state_, range, callbacks_);
  const bool pass_was_over = done == 0 && first > 0;
  if (pass_was_over || state_.exchange.stops()) return;
  warn_of_short_data(state_.layouts.mesh(), "fit", "steps_per_epoch", done,
                     options_.steps_per_epoch);
}

/// Returns the number of batches in a pass over the training data, if known.
std::optional<int64_t> FitLoop::batches_in_pass() const {
  return epoch_steps(data_.train, {.batch_size = options_.batch_size});
}

void FitLoop::end_epoch() {
  FitProgress& progress = state_.progress;
  const int64_t epoch = progress.position.epoch;
  const FitPosition trained = progress.position;
  const Json sums = state_.metrics.totals();
  progress.epoch_logs = state_.metrics.logs_of(sums);
  if (!state_.exchange.stops())
    progress.position = next_epoch(trained, options_, batches_in_pass());
  if (data_.validation && options_.validation_freq.due(epoch)) {
    try {
      for (const auto& [name, value] : validate()) {
        progress.epoch_logs.emplace_back("val_" + name, value);
      }
    } catch (const Interrupted&) {
      // A resumed run repeats the validation, at the end of the epoch with these metrics.
      progress.position = trained;
      state_.metrics.set_restored(sums);
      state_.metrics.begin_epoch(trained.step);
      throw;
    }
  }
  progress.epoch_ends = !state_.exchange.stops();
  state_.exchange.do_on_all_ranks([&] { callbacks_.epoch_end(epoch, progress.epoch_logs); });
  progress.epoch_ends = false;
  progress.history.append(epoch, progress.epoch_logs);
}

Logs FitLoop::validate() {
  if (!state_.executor) {
    BatchLoader loader(data_.validation, validation_batches(options_, state_.layouts));
    return evaluated("fit, validation", steps_, state_, loader, callbacks_,
                     options_.validation_steps);
  }
  return tested(state_, callbacks_, [&] {
    const int64_t steps = *epoch_steps(data_.validation, validation_batches(options_));
    const int64_t done = run_with_executor(
        trainer_, state_, {Phase::test, state_.progress.position.epoch, 0, steps}, callbacks_);
    warn_of_short_data(state_.layouts.mesh(), "fit, validation", "validation_steps", done,
                       options_.validation_steps);
  });
}

}  // namespace tessera::detail
