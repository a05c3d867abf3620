#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/nn/optimizer/gradient_reducer.hpp>
#include <tessera/framework/training/data_views.hpp>
#include <tessera/framework/training/fit_batches.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/run_fingerprint.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

/// Where a callback wants fit to go on has to be inside the data.
void check_position(const FitPosition& position, int64_t epochs, std::optional<int64_t> steps) {
  if (position.epoch >= epochs || !steps || position.step <= *steps) return;
  throw ConfigError("fit", str("the run goes on inside an epoch, of ", *steps, " steps"),
                    str("a position at epoch ", position.epoch + 1, " with ", position.step,
                        " steps done"),
                    "give data and options of the run that was interrupted");
}

}  // namespace

History Model::fit(const DatasetHandle& given, const FitOptions& options) {
  Training& state = training("fit");
  // A callback may compile the model anew.
  const std::shared_ptr<Training> kept = training_;
  const Mesh& mesh = state.layouts.mesh();
  return reporting_failure(mesh, [&] {
    const FitData data = fit_data(given, options);
    if (state.remote) {
      if (!state.placed) ensure_placed(batch_shapes(data.train));
      if (const auto history = state.remote->serve(*this, data, options)) {
        return state.history = *history;
      }
    }
    const auto steps = epoch_steps(data.train, training_batches(options));
    const CallbackList callbacks(
        options.callbacks, *this, mesh,
        {.epochs = options.epochs, .steps = steps, .verbose = options.verbose});
    if (!mesh.is_local()) {
      RunFingerprint facts =
          run_fingerprint(*this, state.options, state.layouts, options.callbacks);
      add_fit(facts, data, options);
      check_same_on_all_ranks(mesh, "fit", facts);
    }
    if (!state.placed) ensure_placed(batch_shapes(data.train));
    // What an interrupted run saves has these sums.
    const auto over = c10::make_scope_exit([&] { state.remote_sums.reset(); });
    try {
      state.fit(*this, data, options, callbacks);
    } catch (const Interrupted&) {
      callbacks.interrupt();
      if (state.remote) state.remote->fail("the fit was interrupted");
      throw;
    } catch (const std::exception& error) {
      if (state.remote) state.remote->fail(error.what());
      throw;
    }
    return state.history;
  });
}

void Model::Training::begin_fit(const FitOptions& given, const CallbackList& callbacks) {
  history = {};
  epoch_logs.clear();
  epoch_ends = false;
  stop = false;
  position = {.epoch = given.initial_epoch};
  restored = nullptr;
  must_be_finite = !callbacks.accepts_non_finite_loss();
  gradients_must_be_finite = must_be_finite && !(optimizer && optimizer->scales_loss());
  // Of steps before this fit.
  take_non_finite_gradient();
  do_on_all_ranks([&] { callbacks.begin(Phase::train); });
}

void Model::Training::fit(Model& model, const FitData& data, const FitOptions& given,
                          const CallbackList& callbacks) {
  const auto over =
      c10::make_scope_exit([this] { must_be_finite = gradients_must_be_finite = false; });
  begin_fit(given, callbacks);
  check_position(position, given.epochs,
                 epoch_steps(data.train, training_batches(given)));
  history.data = data.train.name();
  if (remote) begin_remote(model, data, given);
  for (int64_t epoch = position.epoch; epoch < given.epochs && !stop; ++epoch) {
    do_on_all_ranks([&] { callbacks.epoch_begin(epoch); });
    begin_epoch();
    if (remote) {
      const auto steps = epoch_steps(data.train, training_batches(given));
      run_remote(model, {Phase::train, epoch, position.step, *steps}, callbacks);
    } else {
      BatchLoader loader(data.train, training_batches(given, position, layouts));
      run("fit", Phase::train, loader, callbacks, [&](Examples&& examples, int64_t step) {
        history.steps.push_back(train(model, std::move(examples)));
        position = {epoch, step + 1};
      });
    }
    end_epoch(model, data, given, callbacks);
  }
  const bool trained = optimizer && optimizer->built();
  if (trained) optimizer->finalize_variable_values(model.trainable_weights());
  do_on_all_ranks([&] { callbacks.end(Phase::train, epoch_logs); });
  if (remote) remote->end(history);
}

void Model::Training::end_epoch(Model& model, const FitData& data, const FitOptions& given,
                                const CallbackList& callbacks) {
  const int64_t epoch = position.epoch;
  const FitPosition trained = position;
  const Json sums = totals();
  epoch_logs = logs_of(sums);
  if (!stop) position = {.epoch = epoch + 1};
  if (data.validation && given.validation_freq.due(epoch)) {
    try {
      for (const auto& [name, value] : validate(model, data, given, callbacks)) {
        epoch_logs.emplace_back("val_" + name, value);
      }
    } catch (const Interrupted&) {
      // A run that goes on validates anew, after the epoch with these metrics.
      position = trained;
      restored = sums;
      begin_epoch();
      throw;
    }
  }
  epoch_ends = !stop;
  do_on_all_ranks([&] { callbacks.epoch_end(epoch, epoch_logs); });
  epoch_ends = false;
  history.append(epoch, epoch_logs);
}

Logs Model::Training::validate(Model& model, const FitData& data, const FitOptions& given,
                               const CallbackList& callbacks) {
  if (!remote) {
    BatchLoader loader(data.validation, validation_batches(given, layouts));
    return evaluate("fit, validation", model, loader, callbacks);
  }
  return tested(callbacks, [&] {
    const auto steps = epoch_steps(data.validation, validation_batches(given));
    run_remote(model, {Phase::test, position.epoch, 0, *steps}, callbacks);
  });
}

Logs Model::Training::evaluate(const std::string& caller, Model& model, BatchLoader& loader,
                               const CallbackList& callbacks) {
  return tested(callbacks, [&] {
    run(caller, Phase::test, loader, callbacks,
        [&](Examples&& examples, int64_t) { test(model, std::move(examples)); });
  });
}

Logs Model::Training::tested(const CallbackList& callbacks, const std::function<void()>& pass) {
  do_on_all_ranks([&] { callbacks.begin(Phase::test); });
  reset_metrics();
  pass();
  const Logs values = logs();
  do_on_all_ranks([&] { callbacks.end(Phase::test, values); });
  return values;
}

Logs Model::evaluate(const DatasetHandle& given, const EvaluateOptions& options) {
  Training& state = training("evaluate");
  const std::shared_ptr<Training> kept = training_;
  const Mesh& mesh = state.layouts.mesh();
  return reporting_failure(mesh, [&] {
    check_passes("evaluate", given, options);
    const DatasetHandle data = options.sample_weight.defined()
                                ? with_sample_weight(given, options.sample_weight, "evaluate")
                                : given;
    return state.over("evaluate", *this, data, options,
                      [&](BatchLoader& loader, const CallbackList& callbacks) {
                        return state.evaluate("evaluate", *this, loader, callbacks);
                      });
  });
}

}  // namespace tessera
