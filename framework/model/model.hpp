#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct Batch;
struct CompileOptions;
struct EvaluateOptions;
struct FitOptions;
struct History;
struct PredictOptions;

/// Layers that are trained together (keras.Model). Weights' paths begin with the layers' names; a
/// model inside another prefixes its own. The training methods are defined in framework/training.
class Model : public Layer {
 public:
  explicit Model(const LayerOptions& options = {});
  ~Model() override;

  std::vector<std::shared_ptr<Layer>> sublayers() const override { return layers_; }
  /// The layer of a name. Throws ConfigError naming the nearest one.
  std::shared_ptr<Layer> get_layer(const std::string& name) const;
  std::vector<Variable> weights() const override;
  void set_trainable(bool trainable) override;
  void set_path(const std::string& name, const std::string& path) override;
  void place_weights(const LayoutMap& layouts) override;

  /// How it is trained and where its weights and batches lie; again to change either, which
  /// relayouts weights that exist. Throws LayoutError for a rule that fits no weight, once built.
  void compile(const CompileOptions& options);
  /// Trains on a dataset, global batch by global batch (keras.Model.fit). Collective.
  /// Throws StateError before compile() or when the loss is not finite, ConfigError for options.
  History fit(const DatasetRef& data, const FitOptions& options);
  History fit(const DatasetRef& data);
  /// Loss and metrics over a dataset, by name; every row counts once.
  std::vector<std::pair<std::string, double>> evaluate(const DatasetRef& data,
                                                       const EvaluateOptions& options);
  std::vector<std::pair<std::string, double>> evaluate(const DatasetRef& data);
  /// Outputs for every row of a dataset, whole, on the host of every process.
  at::Tensor predict(const DatasetRef& data, const PredictOptions& options);
  at::Tensor predict(const DatasetRef& data);

  /// One optimizer step on a batch; returns the loss, often pending. Override for a step of your
  /// own.
  virtual DTensor train_step(const Batch& batch);
  /// The loss on a batch, and what it adds to the metrics.
  virtual DTensor test_step(const Batch& batch);

 protected:
  /// Makes a layer part of this model; returns it.
  LayerHandle track(const LayerHandle& layer);
  void name_parts() override;
  void make_weights(const Shapes& inputs) override { build_layers(inputs); }
  bool casts_inputs() const override { return false; }
  /// Builds the layers for these inputs; what a subclass whose call() cannot be followed leaves to
  /// the first call.
  virtual void build_layers(const Shapes&) {}

  /// The compiled loss of a prediction.
  DTensor compute_loss(const Batch& batch, const DTensor& y_pred) const;
  void update_metrics(const Batch& batch, const DTensor& y_pred);

 private:
  struct Training;
  Training& training(const std::string& caller) const;
  void ensure_placed(const Shapes& inputs);

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
  History fit(const DatasetRef& data, const FitOptions& options) const;
  std::vector<std::pair<std::string, double>> evaluate(const DatasetRef& data,
                                                       const EvaluateOptions& options) const;
  at::Tensor predict(const DatasetRef& data, const PredictOptions& options) const;
  void build(const Shape& input) const { model_->build({input}); }
  std::vector<Variable> weights() const { return model_->weights(); }
  std::vector<Variable> trainable_weights() const { return model_->trainable_weights(); }
  int64_t count_params() const { return model_->count_params(); }

 private:
  std::shared_ptr<Model> model_;
};

}  // namespace tessera
