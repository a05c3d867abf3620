#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/nn/optimizer/optimizer.hpp>
#include <tessera/framework/training/logs.hpp>

namespace tessera {

class GradientTape;
class Metric;
class OptimizerHandle;
struct Batch;
struct CompileOptions;
struct EvaluateOptions;
struct FitOptions;
struct History;
struct PlanOptions;
struct PredictOptions;
struct StepPlan;
struct StepRecords;
struct SummaryOptions;

/// Where a run of fit stands: the next step to make, both counted from 0.
struct FitPosition {
  int64_t epoch = 0;
  int64_t step = 0;
};

/// Layers that are trained together (keras.Model). Weights' paths begin with the layers' names; a
/// model inside another prefixes its own. The training methods are defined in framework/training.
class Model : public Layer {
 public:
  explicit Model(const LayerOptions& options = {});
  ~Model() override;

  std::vector<std::shared_ptr<Layer>> sublayers() const override { return layers_; }
  Shape output_shape(const Shapes& inputs) const override;
  /// By planning a call, which builds the layers; an extent that depends on an unknown one is -1.
  Shapes output_shapes(const Shapes& inputs) const override;
  /// What the outputs are called in logs and compile(); one name for a single output.
  virtual std::vector<std::string> output_names() const { return {"output"}; }
  /// The inputs it was built for; empty before.
  virtual Shapes input_shapes() const { return built_for(); }
  /// The layer of a name. Throws ConfigError naming the nearest one.
  std::shared_ptr<Layer> get_layer(const std::string& name) const;
  /// The layer at a place in sublayers(). Throws ConfigError for a place that there is none at.
  std::shared_ptr<Layer> get_layer(int64_t index) const;
  std::vector<Variable> weights() const override;
  /// The weights' values, whole, on the host, in the order of weights(); drawn if they were not.
  /// Collective.
  std::vector<at::Tensor> get_weights() const;
  /// New values for all weights, in that order; nothing is changed unless all of them fit.
  /// Collective. Throws StateError before the model is built, ShapeError naming the weight.
  void set_weights(const std::vector<at::Tensor>& values);
  void set_trainable(bool trainable) override;
  void set_path(const std::string& name, const std::string& path) override;
  void place_weights(const LayoutMap& layouts) override;
  bool is_model() const override { return true; }
  /// Names the layers that have no name yet; building does so too.
  void name_layers() { name_parts(); }

  /// The free functions of these names, and model_to_json().
  void save_weights(const std::string& path) const;
  void load_weights(const std::string& path);
  std::string to_json(int indent = 2) const;

  /// Prints the table of layers, byte for byte as Keras 3 does (keras.Model.summary).
  /// Throws ConfigError for options that do not fit.
  void summary(const SummaryOptions& options);
  void summary();

  /// What a training step on batches like the dataset's needs on every device, and what it
  /// exchanges, before anything of it is allocated: a step without numbers. Throws StateError
  /// before compile(), or if a train_step() of the user's own reads numbers.
  StepPlan plan(const DatasetHandle& data, const PlanOptions& options);
  StepPlan plan(const DatasetHandle& data);

  /// How it is trained and where its weights and batches lie; again to change either, which
  /// relayouts weights that exist. Throws LayoutError for a rule that fits no weight, once built;
  /// ConfigError for an output that it does not have.
  void compile(const CompileOptions& options);
  /// Trains on a dataset, global batch by global batch, or on tensors (keras.Model.fit).
  /// Collective. Throws StateError before compile() or when the loss is not finite, ConfigError for
  /// options.
  History fit(const DatasetHandle& data, const FitOptions& options);
  History fit(const DatasetHandle& data);
  History fit(const at::Tensor& x, const at::Tensor& y, const FitOptions& options);
  History fit(const at::Tensor& x, const at::Tensor& y);
  /// Loss and metrics over a dataset, by name; every row counts once. Collective.
  Logs evaluate(const DatasetHandle& data, const EvaluateOptions& options);
  Logs evaluate(const DatasetHandle& data);
  Logs evaluate(const at::Tensor& x, const at::Tensor& y, const EvaluateOptions& options);
  Logs evaluate(const at::Tensor& x, const at::Tensor& y);
  /// Outputs for every row of a dataset, whole, on the host of every process. Collective. A model
  /// without compile() computes on the default mesh. Throws ConfigError if there are several
  /// outputs.
  at::Tensor predict(const DatasetHandle& data, const PredictOptions& options);
  at::Tensor predict(const DatasetHandle& data);
  /// The same for a model of any number of outputs.
  std::vector<at::Tensor> predict_all(const DatasetHandle& data, const PredictOptions& options);
  std::vector<at::Tensor> predict_all(const DatasetHandle& data);

  /// One step on one batch. Logs run on since the last reset_metrics(). Collective.
  Logs train_on_batch(const Examples& batch);
  Logs test_on_batch(const Examples& batch);
  std::vector<at::Tensor> predict_on_batch(const Examples& batch);
  void reset_metrics();

  /// One optimizer step on a batch; returns the loss, often pending. Override for a step of your
  /// own:
  ///
  ///     DTensor train_step(const Batch& batch) override {
  ///       GradientTape tape;
  ///       const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
  ///       const DTensor loss = compute_loss(batch, y_pred) + my_penalty(y_pred[0]);
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

  /// Whether fit ends after this step; reset when it begins. For callbacks.
  bool stop_training() const;
  void set_stop_training(bool stop);
  bool compiled() const { return training_ != nullptr; }
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
  const OptimizerHandle& optimizer() const;
  /// The compiled metrics by their names in logs, those of the outputs' losses included. Empty
  /// before the first batch, whose shapes choose some.
  std::vector<std::pair<std::string, std::shared_ptr<Metric>>> metrics() const;
  /// Names of the values in logs, alphabetically, as far as known before the first batch.
  std::vector<std::string> metrics_names() const;

 protected:
  /// Makes a layer part of this model; returns it.
  LayerHandle track(const LayerHandle& layer);
  void name_parts() override;
  void make_weights(const Shapes& inputs) override;
  /// Builds the layers for these inputs, by default by planning a call, so that a subclass is whole
  /// before any number is computed. A call() that reads numbers is run on zeros instead.
  virtual void build_layers(const Shapes& inputs);
  /// The layers in the order in which unnamed ones are numbered.
  virtual std::vector<std::shared_ptr<Layer>> naming_order() const { return layers_; }

  /// What a layer is called in during a training step: dropout and the like follow the step.
  CallContext training_context() const;
  /// The weighted sum of the outputs' losses, plus losses(). One prediction for each output.
  virtual DTensor compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred);
  /// One step of the optimizer on the trainable weights by a loss that the tape has recorded.
  void minimize(const DTensor& loss, GradientTape& tape);
  void update_metrics(const Batch& batch, const std::vector<DTensor>& y_pred);

 private:
  DTensor stock_step(const Batch& batch);
  struct Training;
  Training& training(const std::string& caller) const;
  void ensure_placed(const Shapes& inputs);
  Shapes planned_shapes(const Shapes& inputs, int64_t unknown);
  Mesh working_mesh() const;
  void name_layers(const std::string& prefix, std::map<std::string, int64_t>& counts);

  std::vector<std::shared_ptr<Layer>> layers_;
  std::shared_ptr<Training> training_;
};

/// A handle to a model, with its methods; copies are the same model.
class ModelHandle : public LayerHandle {
 public:
  explicit ModelHandle(std::shared_ptr<Model> model);
  Model& model() const { return *model_; }
  Model* operator->() const { return model_.get(); }

  void compile(const CompileOptions& options) const { model_->compile(options); }
  History fit(const DatasetHandle& data, const FitOptions& options) const;
  History fit(const DatasetHandle& data) const;
  History fit(const at::Tensor& x, const at::Tensor& y, const FitOptions& options) const;
  History fit(const at::Tensor& x, const at::Tensor& y) const;
  Logs evaluate(const DatasetHandle& data, const EvaluateOptions& options) const;
  Logs evaluate(const DatasetHandle& data) const;
  Logs evaluate(const at::Tensor& x, const at::Tensor& y, const EvaluateOptions& options) const;
  Logs evaluate(const at::Tensor& x, const at::Tensor& y) const;
  at::Tensor predict(const DatasetHandle& data, const PredictOptions& options) const;
  at::Tensor predict(const DatasetHandle& data) const;
  std::vector<at::Tensor> predict_all(const DatasetHandle& data,
                                      const PredictOptions& options) const;
  std::vector<at::Tensor> predict_all(const DatasetHandle& data) const;
  Logs train_on_batch(const Examples& batch) const { return model_->train_on_batch(batch); }
  Logs test_on_batch(const Examples& batch) const { return model_->test_on_batch(batch); }
  std::vector<at::Tensor> predict_on_batch(const Examples& batch) const;
  void reset_metrics() const { model_->reset_metrics(); }
  const StepRecords& step_records() const { return model_->step_records(); }
  void build(const Shape& input) const { model_->build({input}); }
  std::vector<LayerHandle> layers() const;
  LayerHandle get_layer(const std::string& name) const { return model_->get_layer(name); }
  LayerHandle get_layer(int64_t index) const { return model_->get_layer(index); }
  bool trainable() const { return model_->trainable(); }
  void set_trainable(bool trainable) const { model_->set_trainable(trainable); }
  void summary(const SummaryOptions& options) const { model_->summary(options); }
  void summary() const { model_->summary(); }
  StepPlan plan(const DatasetHandle& data, const PlanOptions& options) const;
  StepPlan plan(const DatasetHandle& data) const;
  std::vector<Variable> weights() const { return model_->weights(); }
  std::vector<Variable> trainable_weights() const { return model_->trainable_weights(); }
  int64_t count_params() const { return model_->count_params(); }
  std::vector<at::Tensor> get_weights() const;
  void set_weights(const std::vector<at::Tensor>& values) const { model_->set_weights(values); }
  void save_weights(const std::string& path) const { model_->save_weights(path); }
  void load_weights(const std::string& path) const { model_->load_weights(path); }
  std::string to_json(int indent = 2) const { return model_->to_json(indent); }

 private:
  std::shared_ptr<Model> model_;
};

}  // namespace tessera
