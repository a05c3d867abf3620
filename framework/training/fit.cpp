#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/progress_bar.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

Shapes batch_shapes(const Dataset& data) {
  Shapes shapes = data.input_shapes();
  for (Shape& shape : shapes) shape.insert(shape.begin(), -1);
  return shapes;
}

void check_data(const std::string& caller, const DatasetRef& data) {
  if (data && data->size() > 0) return;
  throw ConfigError(caller, "the dataset has rows", data ? "an empty dataset" : "no dataset",
                    "pass data to work on");
}

void check_optional(const std::string& caller, const std::string& argument,
                    const std::optional<int64_t>& value) {
  if (value) check_positive(caller, argument, *value);
}

void check_options(const FitOptions& options) {
  check_positive("fit", "batch_size", options.batch_size);
  check_positive("fit", "epochs", options.epochs);
  check_optional("fit", "steps_per_epoch", options.steps_per_epoch);
  check_optional("fit", "validation_steps", options.validation_steps);
  check_optional("fit", "validation_batch_size", options.validation_batch_size);
  if (options.initial_epoch >= 0) return;
  throw ConfigError("fit", "initial_epoch is not negative", str(options.initial_epoch),
                    "pass how many epochs are done");
}

void check_finite(double loss, int64_t epoch, int64_t step) {
  if (std::isfinite(loss)) return;
  throw StateError("fit", "the loss stays finite", str(loss, " at epoch ", epoch + 1, ", step ",
                   step + 1), "lower the learning rate, or look for bad values in the data");
}

std::vector<DTensor> values(const std::vector<Variable>& variables) {
  std::vector<DTensor> list;
  for (const Variable& variable : variables) list.push_back(variable.value());
  return list;
}

}  // namespace

DTensor Model::compute_loss(const Batch& batch, const DTensor& y_pred) const {
  const Training& state = training("compute_loss");
  if (!state.loss) {
    throw StateError("compute_loss", "the model is compiled with a loss", "no loss",
                     "name one in compile()");
  }
  if (!batch.y.defined()) {
    throw ConfigError("fit", "the dataset has labels", "inputs only", "give it y");
  }
  const bool half = y_pred.dtype() == at::kHalf || y_pred.dtype() == at::kBFloat16;
  return (*state.loss)(batch.y, half ? ops::cast(y_pred, at::kFloat) : y_pred,
                       batch.sample_weight);
}

void Model::update_metrics(const Batch& batch, const DTensor& y_pred) {
  for (const auto& metric : training("update_metrics").metrics) {
    metric->update(batch.y, y_pred, batch.sample_weight);
  }
}

DTensor Model::train_step(const Batch& batch) {
  const Training& state = training("train_step");
  if (!state.optimizer) {
    throw StateError("train_step", "the model is compiled with an optimizer", "no optimizer",
                     "name one in compile()");
  }
  const auto random = std::make_shared<RandomStream>(global_seed(), state.optimizer->iterations());
  const std::vector<Variable> variables = trainable_weights();
  GradientTape tape;
  const DTensor y_pred = (*this)(batch.x, {.training = true, .random = random});
  const DTensor loss = compute_loss(batch, y_pred);
  const std::vector<DTensor> gradients = tape.gradient(loss, values(variables));
  state.optimizer->apply(gradients, variables);
  update_metrics(batch, y_pred);
  return loss;
}

DTensor Model::test_step(const Batch& batch) {
  const DTensor y_pred = (*this)(batch.x);
  const DTensor loss = compute_loss(batch, y_pred);
  update_metrics(batch, y_pred);
  return loss;
}

History Model::fit(const DatasetRef& data, const FitOptions& options) {
  const Training& state = training("fit");
  check_data("fit", data);
  check_options(options);
  if (options.validation_data) check_data("fit, validation_data", options.validation_data);
  ensure_placed(batch_shapes(*data));
  History history;
  history.data = data->name();
  ProgressBar bar({.verbose = options.verbose});
  for (int64_t epoch = options.initial_epoch; epoch < options.epochs; ++epoch) {
    BatchLoader loader(*data, {.batch_size = options.batch_size,
                              .shuffle = options.shuffle,
                              .seed = {global_seed(), 0},
                              .epoch = epoch,
                              .steps = options.steps_per_epoch});
    bar.start_epoch(epoch, options.epochs, loader.steps());
    state.reset_metrics();
    RowMean mean;
    ReadingClock clock;
    for (int64_t step = 0; auto examples = loader.next(); ++step) {
      const Batch batch = pack_batch(std::move(*examples), state.layouts);
      const double loss = read_loss(train_step(batch));
      check_finite(loss, epoch, step);
      history.steps.push_back(loss);
      mean.add(loss, batch.rows);
      const bool show = options.verbose == 1 && state.layouts.mesh().is_local() && clock.due();
      bar.update(step + 1, show ? state.logs(mean.value()) : Logs());
    }
    Logs logs = state.logs(mean.value());
    if (options.validation_data) {
      const EvaluateOptions quiet{options.validation_batch_size.value_or(options.batch_size), 0,
                                  options.validation_steps};
      for (const auto& [name, value] : evaluate(options.validation_data, quiet)) {
        logs.emplace_back("val_" + name, value);
      }
    }
    bar.finish(logs);
    history.append(epoch, logs);
  }
  return history;
}

Logs Model::evaluate(const DatasetRef& data, const EvaluateOptions& options) {
  const Training& state = training("evaluate");
  check_data("evaluate", data);
  check_positive("evaluate", "batch_size", options.batch_size);
  check_optional("evaluate", "steps", options.steps);
  ensure_placed(batch_shapes(*data));
  BatchLoader loader(*data, {.batch_size = options.batch_size, .steps = options.steps});
  ProgressBar bar({.verbose = options.verbose});
  bar.start(loader.steps());
  state.reset_metrics();
  RowMean mean;
  ReadingClock clock;
  for (int64_t step = 0; auto examples = loader.next(); ++step) {
    const Batch batch = pack_batch(std::move(*examples), state.layouts);
    mean.add(read_loss(test_step(batch)), batch.rows);
    const bool show = options.verbose == 1 && state.layouts.mesh().is_local() && clock.due();
    bar.update(step + 1, show ? state.logs(mean.value()) : Logs());
  }
  Logs logs = state.logs(mean.value());
  bar.finish(logs);
  return logs;
}

at::Tensor Model::predict(const DatasetRef& data, const PredictOptions& options) {
  const Training& state = training("predict");
  check_data("predict", data);
  check_positive("predict", "batch_size", options.batch_size);
  check_optional("predict", "steps", options.steps);
  ensure_placed(batch_shapes(*data));
  BatchLoader loader(*data, {.batch_size = options.batch_size, .steps = options.steps});
  ProgressBar bar({.verbose = options.verbose});
  bar.start(loader.steps());
  std::vector<at::Tensor> outputs;
  for (int64_t step = 0; auto examples = loader.next(); ++step) {
    const Batch batch = pack_batch(std::move(*examples), state.layouts);
    outputs.push_back((*this)(batch.x).full());
    bar.update(step + 1);
  }
  bar.finish();
  return at::cat(outputs);
}

History Model::fit(const DatasetRef& data) { return fit(data, FitOptions()); }
Logs Model::evaluate(const DatasetRef& data) { return evaluate(data, EvaluateOptions()); }
at::Tensor Model::predict(const DatasetRef& data) { return predict(data, PredictOptions()); }

History ModelHandle::fit(const DatasetRef& data, const FitOptions& options) const {
  return model().fit(data, options);
}
Logs ModelHandle::evaluate(const DatasetRef& data, const EvaluateOptions& options) const {
  return model().evaluate(data, options);
}
at::Tensor ModelHandle::predict(const DatasetRef& data, const PredictOptions& options) const {
  return model().predict(data, options);
}

}  // namespace tessera
