#pragma once

#include <map>
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
#include <tessera/framework/training/step_values.hpp>

namespace tessera {

class Model;
namespace detail {
class RecordedCalls;
struct TrainingState;
}  // namespace detail

/// Arrays by the names of a model's inputs or outputs: {{"a", xa}, {"b", xb}}.
using NamedArrays = std::vector<std::pair<std::string, at::Tensor>>;

/// Base class of Model that trains, evaluates and predicts (Keras' trainer, a base of keras.Model).
class Trainer {
 public:
  virtual ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Configures training and the layouts of weights and batches. A second call changes both and
  /// relayouts existing weights; those of a model without Input are placed once it is built, by
  /// build(), a call or the first batch. Throws LayoutError for a rule that matches no weight (once
  /// the model is built), ConfigError for an output that the model does not have.
  void compile(const CompileOptions& options);
  /// Whether compile() was called.
  bool compiled() const { return training_ != nullptr; }
  /// Trains on a dataset, global batch by global batch (keras.Model.fit). Collective. Throws
  /// StateError before compile() or if the loss is not finite, ConfigError for invalid options.
  History fit(const DatasetHandle& data, const FitOptions& options = {});
  /// Trains on tensors: rows of `x` with their labels `y`.
  History fit(const at::Tensor& x, const at::Tensor& y, const FitOptions& options = {});
  /// Trains on tensors by the names of the model's inputs, in any order (Keras' dict of arrays):
  ///
  ///     model.fit({{"picture", images}, {"caption", captions}}, labels, {.epochs = 3});
  ///
  /// Throws ConfigError for an unknown, missing or repeated name.
  History fit(const NamedArrays& x, const at::Tensor& y, const FitOptions& options = {});
  /// Trains with labels by the names of the model's outputs, too.
  History fit(const NamedArrays& x, const NamedArrays& y, const FitOptions& options = {});
  /// Returns loss and metrics over a dataset, by name; every row counts once. Collective.
  Logs evaluate(const DatasetHandle& data, const EvaluateOptions& options = {});
  /// Returns loss and metrics over tensors: rows of `x` with their labels `y`.
  Logs evaluate(const at::Tensor& x, const at::Tensor& y, const EvaluateOptions& options = {});
  /// Returns loss and metrics over named tensors, as in fit().
  Logs evaluate(const NamedArrays& x, const at::Tensor& y, const EvaluateOptions& options = {});
  Logs evaluate(const NamedArrays& x, const NamedArrays& y, const EvaluateOptions& options = {});
  /// Returns the output for every row of a dataset, in full, on the host of every process.
  /// Collective. A model that was not compiled runs on default_mesh(). Throws ConfigError for a
  /// model with several outputs.
  at::Tensor predict(const DatasetHandle& data, const PredictOptions& options = {});
  /// Returns the output for tensors by the names of the model's inputs, as in fit().
  at::Tensor predict(const NamedArrays& x, const PredictOptions& options = {});
  /// Predicts with a model of any number of outputs; returns one tensor for each.
  std::vector<at::Tensor> predict_all(const DatasetHandle& data,
                                      const PredictOptions& options = {});

  /// Runs one training step. Loss and metrics are reset first, so they are this batch's alone.
  /// Collective.
  Logs train_on_batch(const Examples& batch);
  /// Trains on one batch of tensors: rows of `x` with their labels and optional weights.
  Logs train_on_batch(const at::Tensor& x, const at::Tensor& y,
                      const at::Tensor& sample_weight = {}) {
    return train_on_batch(detail::examples_of(x, y, sample_weight));
  }
  /// Returns loss and metrics of this batch alone. Collective.
  Logs test_on_batch(const Examples& batch);
  /// Tests one batch of tensors: rows of `x` with their labels and optional weights.
  Logs test_on_batch(const at::Tensor& x, const at::Tensor& y,
                     const at::Tensor& sample_weight = {}) {
    return test_on_batch(detail::examples_of(x, y, sample_weight));
  }
  /// Returns the outputs for one batch, in full, on the host. Collective.
  std::vector<at::Tensor> predict_on_batch(const Examples& batch);
  /// Resets loss and metrics.
  void reset_metrics();

  /// Returns the memory that a training step on the dataset's batches needs on every device, and
  /// its collectives. Nothing is allocated: the step runs on abstract tensors. Throws StateError
  /// before compile(), or if a user-defined train_step() reads values.
  StepPlan plan(const DatasetHandle& data, const PlanOptions& options = {});

  /// Runs one optimizer step on a batch; returns the loss, often as a partial sum, or several named
  /// values for the logs. In a step of fit(), values made without a layout (`ones({n, 1})`) are on
  /// the model's mesh. Override it for a custom step:
  ///
  ///     StepValues train_step(const Batch& batch) override {
  ///       GradientTape tape;
  ///       const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
  ///       const DTensor loss = compute_loss(batch, y_pred) + penalty(y_pred[0]);
  ///       minimize(loss, tape);
  ///       update_metrics(batch, y_pred);
  ///       return loss;  // or {{"loss", loss}, {"penalty", penalty}}
  ///     }
  ///
  /// A step with optimizers of its own calls apply_gradients() instead of minimize(); the model is
  /// then compiled without one. fit builds a model without call() by this step.
  virtual StepValues train_step(const Batch& batch);
  /// Returns the loss on a batch, or named values, and updates the metrics.
  virtual StepValues test_step(const Batch& batch);
  /// Returns the outputs for a batch.
  virtual std::vector<DTensor> predict_step(const Batch& batch);

  /// Returns how many training steps were eager, captured and replayed since compile().
  const StepRecords& step_records() const;
  /// Returns the records of the steps of evaluate() and of validations.
  const StepRecords& test_step_records() const;
  /// Returns the records of the steps of predict().
  const StepRecords& predict_step_records() const;

  /// Whether fit ends after the current step. Callbacks set it; fit resets it when it begins.
  bool stop_training() const;
  void set_stop_training(bool stop);
  /// Returns the next step of the current or last fit. A callback resumes a fit by setting it in
  /// on_train_begin(). Setting throws ConfigError for negative numbers.
  FitPosition fit_position() const;
  void set_fit_position(const FitPosition& position);
  /// Returns the history of the current or last fit so far, in on_epoch_end() including that epoch
  /// (Keras' model.history). A callback that resumes a fit sets the earlier history in
  /// on_train_begin().
  History history() const;
  void set_history(const History& history);
  /// Returns running totals and values of loss and metrics in the current epoch, for a checkpoint.
  /// Collective.
  Json metric_totals() const;
  /// Returns the sums on the devices that metric_totals() resolves, by the metrics' names, along a
  /// leading axis for the devices that they are partial sums of.
  std::map<std::string, DTensor> metric_sums() const;
  /// Makes a resumed epoch continue from a result of metric_totals(). Call it in on_train_begin().
  /// With the metric_sums() of the same moment, on a mesh of the same dimensions, its metrics have
  /// the bits of an epoch that was not interrupted. Throws ConfigError for anything else.
  void restore_metric_totals(const Json& totals, std::map<std::string, DTensor> sums = {});
  /// Returns the options passed to compile(). Throws StateError before compile().
  CompileOptions compile_options() const;
  /// Returns the compiled optimizer (a LossScaleOptimizer if compile() added one); null for none.
  /// Throws StateError before compile().
  const OptimizerHandle& optimizer() const;
  /// Returns the compiled metrics by their names in logs, including those of the outputs' losses.
  /// Empty before the first batch, whose shapes choose some of them.
  std::vector<std::pair<std::string, std::shared_ptr<Metric>>> metrics() const;
  /// Returns the names of the values in logs, alphabetically, as far as known before the first
  /// batch.
  std::vector<std::string> metrics_names() const;
  /// Returns the outputs' names in logs and compile(); a single output has one name.
  virtual std::vector<std::string> output_names() const { return {"output"}; }

  /// Returns the inputs' names in fit(); empty if inputs are passed by order only.
  virtual std::vector<std::string> input_names() const { return {}; }
  /// Returns named tensors in the order of the model's inputs, for example to build a pipeline on
  /// them.
  Examples examples(const NamedArrays& x, const at::Tensor& y = {}) const;

  /// Returns the trained model as a layer.
  Layer& layer() const { return layer_; }
  /// Returns the trained model.
  Model& model() const { return model_; }

 protected:
  /// Trains `model`; `layer` is the same object.
  Trainer(Layer& layer, Model& model);

  /// Returns the context in which a training step calls layers; random draws (dropout) follow the
  /// optimizer's step.
  CallContext training_context() const;
  /// Returns the weighted sum of the outputs' losses plus losses(). `y_pred` has one prediction for
  /// each output.
  virtual DTensor compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred);
  /// Runs one optimizer step on the trainable weights, for a loss that `tape` has recorded.
  void minimize(const DTensor& loss, GradientTape& tape);
  void update_metrics(const Batch& batch, const std::vector<DTensor>& y_pred);
  /// Places the weights of a built model as compile() said, unless they are; does nothing before
  /// compile(). Collective if weights have values.
  void place_if_compiled();
  /// Places the weights of a model whose weights were placed and then replaced. Collective.
  void place_replaced_weights();
  /// Builds the layers of a model without call() by an abstract train_step() on the data of the fit
  /// or evaluation that is about to begin. Returns false at other times.
  bool build_by_step();

 private:
  friend class detail::RecordedCalls;
  [[noreturn]] static void fail_uncompiled(const char* caller);
  detail::TrainingState& training(const char* caller) const {
    if (!training_) fail_uncompiled(caller);
    return *training_;
  }
  void ensure_placed(const DatasetHandle& data);
  void ensure_placed(const Shapes& inputs);
  template <class Options, class Pass>
  auto pass_over(const std::string& caller, const DatasetHandle& data, const Options& options,
                 const Pass& pass);

  Layer& layer_;
  Model& model_;
  std::shared_ptr<detail::TrainingState> training_;
};

}  // namespace tessera
