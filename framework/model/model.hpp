#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/model/summary.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera {

/// Layers that are trained together (keras.Model). Weights' paths begin with the layers' names; a
/// nested model prefixes its own name.
class Model : public Layer, public Trainer {
 public:
  explicit Model(const LayerOptions& options = {});
  ~Model() override;

  Shape output_shape(const Shapes& inputs) const override;
  /// Returns the outputs' shapes, found by an abstract call without data, which builds the layers;
  /// an extent that depends on an unknown one is -1.
  Shapes output_shapes(const Shapes& inputs) const override {
    return planned_output_shapes(inputs);
  }
  /// Returns the input shapes that the model was built for; empty before.
  virtual Shapes input_shapes() const { return built_for(); }
  /// Returns the layers without the operations between them (keras.Model.layers); sublayers()
  /// returns both.
  std::vector<std::shared_ptr<Layer>> layers() const;
  /// Returns the layer of that name. Throws ConfigError naming the closest name.
  std::shared_ptr<Layer> get_layer(const std::string& name) const;
  /// Returns the layer at an index of layers(). Throws ConfigError if out of range.
  std::shared_ptr<Layer> get_layer(int64_t index) const;
  /// Returns the weights' full values on the host, in the order of weights(); draws weights not
  /// yet drawn. Collective.
  std::vector<at::Tensor> get_weights() const;
  /// Sets all weights, in the order of weights(); changes nothing unless all shapes match.
  /// Collective. Throws StateError before the model is built, ShapeError naming the weight.
  void set_weights(const std::vector<at::Tensor>& values);
  bool is_model() const override { return true; }
  /// Quantizes every layer inside that can be quantized, such as the projections of an attention
  /// layer, and leaves the others as they are (keras.Model.quantize). The layout map of compile()
  /// places the new weights; call compile() again before further training. Throws StateError if the
  /// model is not built or has a quantized layer, ConfigError for another mode than "int8".
  /// Collective.
  void quantize(const std::string& mode) override;
  /// Gives an adapter to every layer inside whose path matches an RE2 expression in full and that
  /// can have one, and freezes all other weights, biases too:
  ///
  ///     model->enable_lora(".*/attention/(query|value)", 8, {.alpha = 16});
  ///
  /// Call compile() after it. Throws StateError if the model is not built, ConfigError for an
  /// expression that is invalid or matches none of these layers, and as Layer::enable_lora(); then
  /// nothing is changed. Collective.
  void enable_lora(const std::string& layers, int64_t rank, const LoraOptions& options = {});
  /// Names the layers that have no name yet; building does so too.
  void name_layers() { name_sublayers(); }

  /// Saves the complete model for load_model() and Keras (keras.Model.save): to a file
  /// "model.keras", or into a folder of that name. Every process writes its own shards of the
  /// weights. Collective. Throws like save_model().
  void save(const std::string& path, const SaveOptions& options = {}) const;
  /// Saves the weights in the format that the path's extension selects: Keras' ".weights.h5" and
  /// ".weights.json", which include the optimizer's variables, or safetensors for any other
  /// (keras.Model.save_weights). Collective. Throws like the free function save_weights().
  void save_weights(const std::string& path, const SaveWeightsOptions& options = {}) const;
  /// Loads weights that save_weights() or Keras wrote, directly into their layouts
  /// (keras.Model.load_weights). Collective. Throws like the free function load_weights().
  void load_weights(const std::string& path, const LoadWeightsOptions& options = {});
  /// Returns the configuration as JSON that Keras also reads (keras.Model.to_json).
  std::string to_json(int indent = 2) const;

  /// Prints the table of layers, byte for byte as Keras 3 does (keras.Model.summary).
  /// Throws ConfigError for invalid options.
  void summary(const SummaryOptions& options = {});

 protected:
  /// Builds the layers by an abstract call, or, in fit of a model without call(), by an abstract
  /// train_step().
  void build_sublayers(const Shapes& inputs) override;
  void place_compiled() override {
    if (!in_model()) place_if_compiled();
  }
};

/// A handle to a model: copies share the model. It has the methods that Keras users call most; `->`
/// reaches all others of Model.
class ModelHandle : public LayerHandle {
 public:
  explicit ModelHandle(std::shared_ptr<Model> model);
  Model& model() const { return *model_; }
  Model* operator->() const { return model_.get(); }

  /// Model::compile().
  void compile(const CompileOptions& options) const { model_->compile(options); }
  /// Model::fit().
  History fit(const DatasetHandle& data, const FitOptions& options = {}) const {
    return model_->fit(data, options);
  }
  History fit(const at::Tensor& x, const at::Tensor& y, const FitOptions& options = {}) const {
    return model_->fit(x, y, options);
  }
  History fit(const NamedArrays& x, const at::Tensor& y, const FitOptions& options = {}) const {
    return model_->fit(x, y, options);
  }
  History fit(const NamedArrays& x, const NamedArrays& y, const FitOptions& options = {}) const {
    return model_->fit(x, y, options);
  }
  /// Model::evaluate().
  Logs evaluate(const DatasetHandle& data, const EvaluateOptions& options = {}) const {
    return model_->evaluate(data, options);
  }
  Logs evaluate(const at::Tensor& x, const at::Tensor& y,
                const EvaluateOptions& options = {}) const {
    return model_->evaluate(x, y, options);
  }
  Logs evaluate(const NamedArrays& x, const at::Tensor& y,
                const EvaluateOptions& options = {}) const {
    return model_->evaluate(x, y, options);
  }
  Logs evaluate(const NamedArrays& x, const NamedArrays& y,
                const EvaluateOptions& options = {}) const {
    return model_->evaluate(x, y, options);
  }
  /// Model::predict().
  at::Tensor predict(const DatasetHandle& data, const PredictOptions& options = {}) const {
    return model_->predict(data, options);
  }
  at::Tensor predict(const NamedArrays& x, const PredictOptions& options = {}) const {
    return model_->predict(x, options);
  }
  std::vector<at::Tensor> predict_all(const DatasetHandle& data,
                                      const PredictOptions& options = {}) const {
    return model_->predict_all(data, options);
  }
  Logs train_on_batch(const Examples& batch) const { return model_->train_on_batch(batch); }
  Logs train_on_batch(const at::Tensor& x, const at::Tensor& y,
                      const at::Tensor& sample_weight = {}) const {
    return model_->train_on_batch(x, y, sample_weight);
  }
  Logs test_on_batch(const Examples& batch) const { return model_->test_on_batch(batch); }
  Logs test_on_batch(const at::Tensor& x, const at::Tensor& y,
                     const at::Tensor& sample_weight = {}) const {
    return model_->test_on_batch(x, y, sample_weight);
  }
  std::vector<at::Tensor> predict_on_batch(const Examples& batch) const {
    return model_->predict_on_batch(batch);
  }
  void reset_metrics() const { model_->reset_metrics(); }
  const StepRecords& step_records() const { return model_->step_records(); }
  const StepRecords& test_step_records() const { return model_->test_step_records(); }
  const StepRecords& predict_step_records() const { return model_->predict_step_records(); }
  void build(const Shape& input) const { model_->build({input}); }
  std::vector<LayerHandle> layers() const;
  LayerHandle get_layer(const std::string& name) const { return model_->get_layer(name); }
  LayerHandle get_layer(int64_t index) const { return model_->get_layer(index); }
  bool trainable() const { return model_->trainable(); }
  void set_trainable(bool trainable) const { model_->set_trainable(trainable); }
  void quantize(const std::string& mode) const { model_->quantize(mode); }
  /// Model::enable_lora().
  void enable_lora(const std::string& layers, int64_t rank, const LoraOptions& options = {}) const {
    model_->enable_lora(layers, rank, options);
  }
  void merge_lora() const { model_->merge_lora(); }
  void summary(const SummaryOptions& options = {}) const { model_->summary(options); }
  StepPlan plan(const DatasetHandle& data, const PlanOptions& options = {}) const {
    return model_->plan(data, options);
  }
  std::vector<Variable> weights() const { return model_->weights(); }
  std::vector<Variable> trainable_weights() const { return model_->trainable_weights(); }
  int64_t count_params() const { return model_->count_params(); }
  std::vector<at::Tensor> get_weights() const { return model_->get_weights(); }
  void set_weights(const std::vector<at::Tensor>& values) const { model_->set_weights(values); }
  void save(const std::string& path, const SaveOptions& options = {}) const {
    model_->save(path, options);
  }
  void save_weights(const std::string& path, const SaveWeightsOptions& options = {}) const {
    model_->save_weights(path, options);
  }
  void load_weights(const std::string& path, const LoadWeightsOptions& options = {}) const {
    model_->load_weights(path, options);
  }
  std::string to_json(int indent = 2) const { return model_->to_json(indent); }

 private:
  std::shared_ptr<Model> model_;
};

}  // namespace tessera
