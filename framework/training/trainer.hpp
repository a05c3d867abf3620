#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/logs.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/framework/training/phase.hpp>
#include <tessera/framework/training/step_plan.hpp>
#include <tessera/framework/training/step_records.hpp>

namespace tessera {

class Model;
namespace detail {
struct TrainingState;
/// Arrays by the names of what they are for, as a model has several inputs: {{"a", xa}, {"b", xb}}.
using NamedArrays = std::vector<std::pair<std::string, at::Tensor>>;
}  // namespace detail

/// How a model is trained, evaluated and asked (Keras' trainer, a base of keras.Model).
class Trainer {
 public:
  virtual ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Says how the model is trained and where its weights and batches lie; again to change either,
  /// which relayouts weights that exist. Throws LayoutError for a rule that fits no weight, once
  /// built; ConfigError for an output that the model does not have.
  void compile(const CompileOptions& options);
  /// Whether compile() was called.
  bool compiled() const { return training_ != nullptr; }
  /// Trains on a dataset, global batch by global batch (keras.Model.fit). Collective. Throws
  /// StateError before compile() or when the loss is not finite, ConfigError for options.
  History fit(const DatasetHandle& data, const FitOptions& options = {});
  /// Trains on tensors: rows of x, and y for each.
  History fit(const at::Tensor& x, const at::Tensor& y, const FitOptions& options = {});
  /// Trains on tensors by the names of the model's inputs, in any order (Keras' dict of arrays):
  ///
  ///     model.fit({{"picture", images}, {"caption", captions}}, labels, {.epochs = 3});
  ///
  /// Throws ConfigError for a name that the model does not have, or that is missing or there twice.
  History fit(const detail::NamedArrays& x, const at::Tensor& y, const FitOptions& options = {});
  /// The same with labels by the names of the model's outputs.
  History fit(const detail::NamedArrays& x, const detail::NamedArrays& y,
              const FitOptions& options = {});
  /// Loss and metrics over a dataset, by name; every row counts once. Collective.
  Logs evaluate(const DatasetHandle& data, const EvaluateOptions& options = {});
  /// Loss and metrics over tensors: rows of x, and y for each.
  Logs evaluate(const at::Tensor& x, const at::Tensor& y, const EvaluateOptions& options = {});
  /// Loss and metrics over tensors by names, as fit() takes them.
  Logs evaluate(const detail::NamedArrays& x, const at::Tensor& y,
                const EvaluateOptions& options = {});
  Logs evaluate(const detail::NamedArrays& x, const detail::NamedArrays& y,
                const EvaluateOptions& options = {});
  /// Outputs for every row of a dataset, whole, on the host of every process. Collective. A model
  /// without compile() computes on the default mesh. Throws ConfigError if there are several
  /// outputs.
  at::Tensor predict(const DatasetHandle& data, const PredictOptions& options = {});
  /// Outputs for tensors by the names of the model's inputs, as fit() takes them.
  at::Tensor predict(const detail::NamedArrays& x, const PredictOptions& options = {});
  /// predict() for a model of any number of outputs: one tensor for each.
  std::vector<at::Tensor> predict_all(const DatasetHandle& data,
                                      const PredictOptions& options = {});

  /// One training step on one batch; loss and metrics begin anew and are of this batch alone.
  /// Collective.
  Logs train_on_batch(const Examples& batch);
  /// Trains on one batch of tensors: rows of x, and y and maybe a weight for each.
  Logs train_on_batch(const at::Tensor& x, const at::Tensor& y,
                      const at::Tensor& sample_weight = {}) {
    return train_on_batch(detail::examples_of(x, y, sample_weight));
  }
  /// Loss and metrics of one batch alone. Collective.
  Logs test_on_batch(const Examples& batch);
  /// Loss and metrics of one batch of tensors: rows of x, and y and maybe a weight for each.
  Logs test_on_batch(const at::Tensor& x, const at::Tensor& y,
                     const at::Tensor& sample_weight = {}) {
    return test_on_batch(detail::examples_of(x, y, sample_weight));
  }
  /// The outputs for one batch, whole. Collective.
  std::vector<at::Tensor> predict_on_batch(const Examples& batch);
  /// Loss and metrics begin anew.
  void reset_metrics();

  /// What a training step on batches like the dataset's needs on every device, and what it
  /// exchanges, before anything of it is allocated: a step without numbers. Throws StateError
  /// before compile(), or if a train_step() of the user's own reads numbers.
  StepPlan plan(const DatasetHandle& data, const PlanOptions& options = {});

  /// One optimizer step on a batch; returns the loss, often pending. Override for a step of your
  /// own:
  ///
  ///     DTensor train_step(const Batch& batch) override {
  ///       GradientTape tape;
  ///       const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
  ///       const DTensor loss = compute_loss(batch, y_pred) + penalty(y_pred[0]);
  ///       minimize(loss, tape);
  ///       update_metrics(batch, y_pred);
  ///       return loss;
  ///     }
  virtual DTensor train_step(const Batch& batch);
  /// The loss on a batch, and what it adds to the metrics.
  virtual DTensor test_step(const Batch& batch);
  /// The outputs for a batch.
  virtual std::vector<DTensor> predict_step(const Batch& batch);

  /// How many training steps were eager, recorded and replayed since compile().
  const StepRecords& step_records() const;
  /// The same of the steps of evaluate() and of validations, and of predict().
  const StepRecords& test_step_records() const;
  const StepRecords& predict_step_records() const;

  /// Whether fit ends after this step; reset when it begins. For callbacks.
  bool stop_training() const;
  void set_stop_training(bool stop);
  /// The next step of the fit that runs, or ran. A callback that sets it in on_train_begin() makes
  /// fit go on from there. Setting throws ConfigError for negative numbers.
  FitPosition fit_position() const;
  void set_fit_position(const FitPosition& position);
  /// What the fit that runs, or ran, went through so far, in on_epoch_end() that epoch included
  /// (Keras' model.history). A callback that sets it in on_train_begin() tells what came before.
  History history() const;
  void set_history(const History& history);
  /// Loss and metrics of the epoch so far, for a checkpoint: their running totals and values.
  /// Collective.
  Json metric_totals() const;
  /// The epoch in which fit goes on counts on from what metric_totals() gave; for on_train_begin().
  /// Throws ConfigError for anything else.
  void restore_metric_totals(const Json& totals);
  /// What compile() was given. Throws StateError before.
  CompileOptions compile_options() const;
  /// The optimizer that compile() was given; null for none. Throws StateError before.
  const OptimizerHandle& optimizer() const;
  /// The compiled metrics by their names in logs, those of the outputs' losses included. Empty
  /// before the first batch, whose shapes choose some.
  std::vector<std::pair<std::string, std::shared_ptr<Metric>>> metrics() const;
  /// Names of the values in logs, alphabetically, as far as known before the first batch.
  std::vector<std::string> metrics_names() const;
  /// What the outputs are called in logs and compile(); one name for a single output.
  virtual std::vector<std::string> output_names() const { return {"output"}; }

  /// What the inputs are called in fit(); none where only their order counts.
  virtual std::vector<std::string> input_names() const { return {}; }
  /// Tensors by the names of the inputs, as fit() takes them, in the model's order: data of which a
  /// pipeline can be made.
  Examples examples(const detail::NamedArrays& x, const at::Tensor& y = {}) const;

  /// The model that is trained, as a layer.
  Layer& layer() const { return layer_; }
  /// The model that is trained.
  Model& model() const { return model_; }

 protected:
  /// Trains `model`, which is `layer` too.
  Trainer(Layer& layer, Model& model);

  /// What a layer is called in during a training step: dropout and the like follow the step.
  CallContext training_context() const;
  /// The weighted sum of the outputs' losses, plus losses(). One prediction for each output.
  virtual DTensor compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred);
  /// One step of the optimizer on the trainable weights by a loss that the tape has recorded.
  void minimize(const DTensor& loss, GradientTape& tape);
  void update_metrics(const Batch& batch, const std::vector<DTensor>& y_pred);

 private:
  [[noreturn]] static void fail_uncompiled(const char* caller);
  detail::TrainingState& training(const char* caller) const {
    if (!training_) fail_uncompiled(caller);
    return *training_;
  }
  void ensure_placed(const Shapes& inputs);
  template <class Options, class Pass>
  auto pass_over(const std::string& caller, const DatasetHandle& data, const Options& options,
                 const Pass& pass);

  Layer& layer_;
  Model& model_;
  std::shared_ptr<detail::TrainingState> training_;
};

}  // namespace tessera
