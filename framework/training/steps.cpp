#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/status.hpp>
#include <tessera/framework/ops/dispatch.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/training/rate.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

/// The weights of an output's samples; undefined if there are none.
DTensor weights_of(const Batch& batch, size_t output) {
  const std::vector<DTensor>& weights = batch.sample_weight;
  if (weights.empty()) return {};
  if (weights.size() == 1) return weights[0];
  if (weights.size() == batch.y.size()) return weights[output];
  throw ConfigError("fit", "sample weights are for all outputs, or for each",
                    str(weights.size(), " of them for ", batch.y.size(), " outputs"),
                    "give one, or one for each output");
}

void check_number(const DTensor& loss) {
  if (loss.numel() == 1) return;
  throw ShapeError("loss", "a step's loss is one number", to_string(loss.shape()),
                   "reduce it: sum_over_batch_size or sum");
}

}  // namespace

void LossMean::add_loss(const DTensor& loss, int64_t rows) {
  const NoRecording untaped;
  const auto count = static_cast<double>(rows);
  add(ops::reshape(ops::scale(ops::cast(loss, at::kDouble), count), {1}), {0, count});
}

double LossMean::result(const std::vector<double>& totals) const {
  return totals.size() < 2 || totals[1] == 0 ? 0 : totals[0] / totals[1];
}

CallContext Model::training_context() const {
  return {.training = true,
          .random = std::make_shared<RandomStream>(global_seed(), optimizer_of(*this).steps())};
}

DTensor Model::compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred) {
  Training& state = training("compute_loss");
  state.choose(output_names(), batch, y_pred);
  DTensor total;
  const auto add = [&](const DTensor& loss) {
    total = total.defined() ? total + ops::cast(loss, total.dtype()) : loss;
  };
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    const CompiledOutput& output = state.outputs[i];
    if (!output.loss) continue;
    const DTensor loss = (*output.loss)(batch.y[i], y_pred[i], weights_of(batch, i));
    check_number(loss);
    if (output.mean) output.mean->add_loss(loss, batch.rows);
    add(output.weight == 1 ? loss : ops::scale(loss, output.weight));
  }
  for (const DTensor& loss : losses()) add(loss);
  if (total.defined()) return total;
  throw StateError("compute_loss", "the model is compiled with a loss", "no loss",
                   "name one in compile(), or call add_loss() in a layer");
}

void Model::minimize(const DTensor& loss, GradientTape& tape) {
  const std::vector<Variable> variables = trainable_weights();
  if (variables.empty()) {
    if (!weights().empty()) return;
    throw StateError("model " + path(), "a model has weights to train", "none",
                     "pass every layer that its call() uses to track()");
  }
  std::vector<DTensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value());
  Optimizer& optimizer = optimizer_of(*this);
  const std::vector<DTensor> gradients = tape.gradient(optimizer.scale_loss(loss), values);
  // Weights that nobody else holds are updated in place.
  values.clear();
  optimizer.apply(gradients, variables);
}

void Model::update_metrics(const Batch& batch, const std::vector<DTensor>& y_pred) {
  Training& state = training("update_metrics");
  state.choose(output_names(), batch, y_pred);
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    for (const auto& metric : state.outputs[i].metrics) metric->update(batch.y[i], y_pred[i]);
    for (const auto& metric : state.outputs[i].weighted_metrics) {
      metric->update(batch.y[i], y_pred[i], weights_of(batch, i));
    }
  }
}

DTensor Model::train_step(const Batch& batch) {
  GradientTape tape;
  const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
  const DTensor loss = compute_loss(batch, y_pred);
  minimize(loss, tape);
  update_metrics(batch, y_pred);
  return loss;
}

DTensor Model::test_step(const Batch& batch) {
  const std::vector<DTensor> y_pred = outputs(batch.x);
  const DTensor loss = compute_loss(batch, y_pred);
  update_metrics(batch, y_pred);
  return loss;
}

std::vector<DTensor> Model::predict_step(const Batch& batch) { return outputs(batch.x); }

Batch Model::Training::prepare(Model& model, Examples&& examples) {
  model.clear_losses();
  return pack_batch(std::move(examples), layouts);
}

double Model::Training::train(Model& model, Examples&& examples) {
  const Batch batch = prepare(model, std::move(examples));
  const double value = read_loss(model.train_step(batch));
  loss.add(value, batch.rows);
  return value;
}

double Model::Training::test(Model& model, Examples&& examples) {
  const Batch batch = prepare(model, std::move(examples));
  const double value = read_loss(model.test_step(batch));
  loss.add(value, batch.rows);
  return value;
}

std::vector<at::Tensor> Model::Training::predict(Model& model, Examples&& examples) {
  std::vector<at::Tensor> whole;
  for (const DTensor& output : model.predict_step(prepare(model, std::move(examples)))) {
    whole.push_back(output.full());
  }
  return whole;
}

void Model::Training::run(Phase phase, BatchLoader& loader, const CallbackList& callbacks,
                          const std::function<void(Examples&&, int64_t)>& step) {
  std::optional<Examples> examples;
  agree([&] { examples = loader.next(); });
  for (int64_t number = loader.first_step(); examples; ++number) {
    callbacks.batch_begin(phase, number);
    step(std::move(*examples), number);
    const bool all = callbacks.wants_batch_logs(phase, number);
    const Logs values = all ? logs() : Logs{{"loss", loss.value()}};
    agree([&] {
      callbacks.batch_end(phase, number, values);
      examples = loader.next();
    });
    if (phase == Phase::train && stop) return;
  }
}

void Model::Training::agree(const std::function<void()>& local) {
  const StatusWord word = exchanged(layouts.mesh(), "an error", [&](StatusWord& own) {
    local();
    if (stop) own.raise(StepStatus::stop, "a callback's wish");
  });
  if (word.status() == StepStatus::error) {
    throw StateError("step", "every process goes on", str("an error on rank ", word.rank()),
                     "look at what that process says");
  }
  stop = word.status() >= StepStatus::stop;
}

Shapes batch_shapes(const DatasetRef& data) {
  Shapes shapes = data.input_shapes();
  for (Shape& shape : shapes) shape.insert(shape.begin(), -1);
  return shapes;
}

double read_loss(const DTensor& loss) {
  check_number(loss);
  return loss.full().item<double>();
}

}  // namespace tessera
