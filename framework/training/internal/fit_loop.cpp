#include <tessera/framework/training/internal/fit_loop.hpp>

#include <optional>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/training/internal/batch_loop.hpp>
#include <tessera/framework/training/internal/executor_loop.hpp>

namespace tessera::detail {
namespace {

/// Throws ConfigError if a callback resumes fit at a position outside the data.
void check_position(const FitPosition& position, int64_t epochs, std::optional<int64_t> steps) {
  if (position.epoch >= epochs || !steps || position.step <= *steps) return;
  throw ConfigError(
      "fit", str("the run resumes inside an epoch of ", *steps, " steps"),
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
               BatchLoader& loader, const CallbackList& callbacks) {
  return tested(state, callbacks, [&] {
    BatchLoop batches(caller, Phase::test, state, callbacks, loader);
    while (std::optional<Examples> examples = batches.next()) {
      steps.test(std::move(*examples), batches.signature());
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
  state_.progress = {};
  state_.losses.clear();
  state_.progress.position.epoch = options_.initial_epoch;
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
  check_position(progress.position, options_.epochs,
                 epoch_steps(data_.train, training_batches(options_)));
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
  FitProgress& progress = state_.progress;
  if (state_.executor) {
    const auto steps = epoch_steps(data_.train, training_batches(options_));
    run_with_executor(trainer_, state_, {Phase::train, epoch, progress.position.step, *steps},
                      callbacks_);
    return;
  }
  BatchLoader loader(data_.train, training_batches(options_, progress.position, state_.layouts));
  BatchLoop batches("fit", Phase::train, state_, callbacks_, loader);
  while (std::optional<Examples> examples = batches.next()) {
    steps_.train(std::move(*examples), batches.signature(),
                 [&progress](double loss) { progress.history.steps.push_back(loss); });
    progress.position = {epoch, batches.step() + 1};
  }
}

void FitLoop::end_epoch() {
  FitProgress& progress = state_.progress;
  const int64_t epoch = progress.position.epoch;
  const FitPosition trained = progress.position;
  const Json sums = state_.metrics.totals();
  progress.epoch_logs = state_.metrics.logs_of(sums);
  if (!state_.exchange.stops()) progress.position = {.epoch = epoch + 1};
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
    return evaluated("fit, validation", steps_, state_, loader, callbacks_);
  }
  return tested(state_, callbacks_, [&] {
    const auto steps = epoch_steps(data_.validation, validation_batches(options_));
    run_with_executor(trainer_, state_, {Phase::test, state_.progress.position.epoch, 0, *steps},
                      callbacks_);
  });
}

}  // namespace tessera::detail
