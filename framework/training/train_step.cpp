#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/out_of_memory.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/deferred_value.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/framework/training/callbacks/internal/learning_rate_access.hpp>
#include <tessera/framework/training/internal/first_step.hpp>
#include <tessera/framework/training/internal/non_finite.hpp>
#include <tessera/framework/training/internal/plan_peak.hpp>
#include <tessera/framework/training/internal/plan_step.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns the sample weights of an output; undefined if there are none.
DTensor weights_of(const Batch& batch, size_t output) {
  const std::vector<DTensor>& weights = batch.sample_weight;
  if (weights.empty()) return {};
  if (weights.size() == 1) return weights[0];
  if (weights.size() == batch.y.size()) return weights[output];
  throw ConfigError("fit", "sample_weight has one tensor for all outputs, or one for each",
                    str(weights.size(), " tensors for ", batch.y.size(), " outputs"),
                    "pass one, or one for each output");
}

/// Computes the loss of an output; errors name its labels.
DTensor loss_of(const Loss& loss, const Batch& batch, const std::vector<DTensor>& y_pred,
                size_t output) {
  try {
    return loss(batch.y[output], y_pred[output], weights_of(batch, output));
  } catch (const Error&) {
    rethrow_at(y_pred.size() == 1 ? "labels y" : str("labels y[", output, "]"));
  }
}

/// Reports user-defined code to a step that is being captured.
template <class T>
void tell_tracer(const T& used, const char* what) {
  OpListener* const listener = tracer();
  if (listener && !used.can_be_replayed()) listener->user_code(str(what, " ", used.class_name()));
}

/// Throws StateError for an allocator's error: says what a step holds, by use and layer.
[[noreturn]] void throw_out_of_memory(const std::exception& error,
                                      const std::function<StepPlan()>& make_plan) {
  std::string received = error.what();
  received = "out of memory: " + received.substr(0, received.find('\n'));
  std::string place = "train_step";
  try {
    const StepPlan plan = make_plan();
    received += "; a step holds up to " + memory_text(plan);
    const std::string& layer = plan.peaks[fullest_device(plan)].place;
    if (!layer.empty()) place = layer;
  } catch (const std::exception&) {
    // Without a plan, the allocator's text is all there is to say.
  }
  throw StateError(place, "a training step fits in memory", received, memory_advice());
}

}  // namespace

CallContext Trainer::training_context() const {
  const TrainingState& state = training("training_context");
  const std::shared_ptr<RandomStream>& stream = state.step_random;
  return {.training = true, .random = stream ? stream : random_stream(state)};
}

DTensor Trainer::compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred) {
  TrainingState& state = training("compute_loss");
  if (!state.metrics.fits(batch, y_pred)) state.metrics.choose(output_names(), batch, y_pred);
  for (size_t i = 0; i < y_pred.size(); ++i) {
    // The loss reads what a metric needs anyway.
    if (state.metrics.reads_predictions(i)) DeferredValue::compute_now(y_pred[i]);
  }
  DTensor total;
  const auto add = [&](const DTensor& loss) {
    total = total.defined() ? total + ops::cast(loss, total.dtype()) : loss;
  };
  for (size_t i = 0; i < state.metrics.outputs().size(); ++i) {
    const CompiledOutput& output = state.metrics.outputs()[i];
    if (!output.loss) continue;
    tell_tracer(*output.loss, "the loss");
    const DTensor loss = loss_of(*output.loss, batch, y_pred, i);
    check_one_number(loss);
    if (output.mean) output.mean->add_loss(loss, batch.rows);
    add(output.weight == 1 ? loss : ops::scale(loss, output.weight));
  }
  for (const DTensor& loss : layer_.losses()) add(loss);
  if (total.defined()) return total;
  throw StateError("compute_loss", "the model is compiled with a loss", "no loss",
                   "name one in compile(), or call add_loss() in a layer");
}

void Trainer::minimize(const DTensor& loss, GradientTape& tape) {
  TrainingState& state = training("minimize");
  // The step builds a model without call().
  if (is_abstract() && !state.placed) return;
  const std::vector<Variable> variables = layer_.trainable_weights();
  if (!state.first_step.trains(layer_, variables)) return;
  // Not the mesh of the loss, which a plan replaces.
  if (state.layouts.mesh().is_local()) {
    // The state is read on every replay, since what is checked may change.
    traced(std::span(&loss, 1), [&state](std::span<const DTensor> in) {
      if (state.finite.loss) check_finite_blocks(in[0]);
    });
  }
  const bool first = state.first_step.check(layer_, tape);
  std::vector<DTensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value());
  Optimizer& optimizer = optimizer_of(*this);
  GradientReducer& reducer = optimizer.reducer();
  reducer.set_bucket_cap_mb(state.options.bucket_cap_mb);
  const auto over = c10::make_scope_exit([&] { reducer.reset(); });
  const std::vector<DTensor> gradients =
      tape.gradient(optimizer.scale_loss(loss), values,
                    {.on_ready = optimizer.reduce_when_ready(variables),
                     .row_sparse = optimizer.takes_rows(),
                     .narrow = true});
  if (first) warn_of_missing_gradients(layer_, variables, gradients);
  // Cleared, so that nobody else holds the weights and they are updated in place.
  values.clear();
  traced(gradients, [&optimizer, variables](std::span<const DTensor> in) {
    optimizer.apply({in.begin(), in.end()}, variables);
  });
}

void Trainer::update_metrics(const Batch& batch, const std::vector<DTensor>& y_pred) {
  TrainingState& state = training("update_metrics");
  if (!state.metrics.fits(batch, y_pred)) state.metrics.choose(output_names(), batch, y_pred);
  for (size_t i = 0; i < state.metrics.outputs().size(); ++i) {
    for (const auto& metric : state.metrics.outputs()[i].metrics) {
      tell_tracer(*metric, "metric");
      metric->update(batch.y[i], y_pred[i]);
    }
    for (const auto& metric : state.metrics.outputs()[i].weighted_metrics) {
      tell_tracer(*metric, "metric");
      metric->update(batch.y[i], y_pred[i], weights_of(batch, i));
    }
  }
}

StepValues Trainer::train_step(const Batch& batch) {
  TrainingState& state = training("train_step");
  state.ran_own_step = true;
  const auto step = [&] {
    GradientTape tape;
    std::vector<DTensor> y_pred = layer_.outputs(batch.x, training_context());
    const DTensor loss = compute_loss(batch, y_pred);
    const bool read = state.metrics.reads_predictions();
    // Deferred logits hold the weights, which are updated in place.
    if (!read) y_pred.clear();
    minimize(loss, tape);
    if (read) update_metrics(batch, y_pred);
    return std::vector{loss};
  };
  try {
    return state.captures.of(Phase::train)
        .run(layer_, batch, state.options, state.steps(), false, step)[0];
  } catch (const std::exception& error) {
    if (is_abstract() || !is_out_of_memory(error)) throw;
    const auto planned_step = [this](const Batch& abstract) { return train_step(abstract).loss(); };
    throw_out_of_memory(error, [&] {
      return plan_step(
          layer_, state.optimizer(), state.layouts, [&] { return abstract_like(batch); }, 0,
          planned_step);
    });
  }
}

StepValues Trainer::test_step(const Batch& batch) {
  TrainingState& state = training("test_step");
  const auto step = [&] {
    const std::vector<DTensor> y_pred = layer_.outputs(batch.x);
    const DTensor loss = compute_loss(batch, y_pred);
    if (state.metrics.reads_predictions()) update_metrics(batch, y_pred);
    return std::vector{loss};
  };
  return state.captures.of(Phase::test)
      .run(layer_, batch, state.options, state.steps(), false, step)[0];
}

std::vector<DTensor> Trainer::predict_step(const Batch& batch) {
  // The model of an export is not compiled.
  if (!compiled()) return layer_.outputs(batch.x);
  TrainingState& state = training("predict_step");
  return state.captures.of(Phase::predict)
      .run(layer_, batch, state.options, state.steps(), false, [&] {
        std::vector<DTensor> y_pred = layer_.outputs(batch.x);
        for (const DTensor& each : y_pred) DeferredValue::compute_now(each);
        return y_pred;
      });
}

}  // namespace tessera
