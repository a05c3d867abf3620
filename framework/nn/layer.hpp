#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/dtype_policy.hpp>
#include <tessera/framework/nn/symbolic.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera {

class KeyValueCache;
class LayerHandle;

namespace detail {

/// Random numbers of one step: a draw's stream is (seed, layer path, call of that layer, step), so
/// it is the same on every mesh, and (seed, step) is all there is to save.
class RandomStream {
 public:
  RandomStream(int64_t seed, int64_t step) : seed_(seed), step_(step) {}
  /// Seed of the next draw of the layer at `path`.
  Seed next(const std::string& path);
  /// The seed of the next draw as operations take it, with `fold` folded into it: a step that is
  /// recorded draws anew each time it is replayed, which it cannot with next().
  DTensor next_input(const std::string& path, const Mesh& mesh,
                     std::optional<int64_t> fold = std::nullopt);

 private:
  Seed stream(const std::string& path);

  int64_t seed_;
  int64_t step_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace detail

/// What a call is made in.
struct CallContext {
  bool training = false;
  std::shared_ptr<detail::RandomStream> random = nullptr;  ///< null: draws use seed 0, step 0
  /// What layers keep of the steps before those that the call is made on; null: these are all.
  std::shared_ptr<KeyValueCache> cache = nullptr;
};

namespace detail {

/// The context of the call that this thread is in; outside of all, inference.
const CallContext& call_context();

class PlacedValues;

}  // namespace detail

/// Tensors a layer is called on; most take one.
using Inputs = std::vector<DTensor>;
/// Global shapes of the tensors a layer is called on; -1 is an extent not known yet, the batch's.
using Shapes = std::vector<Shape>;

/// What a weight is beside name, shape and first values.
struct WeightOptions {
  bool trainable = true;               ///< whether training changes it, if the layer is trainable
  RegularizerHandle regularizer = {};  ///< the penalty on it that the loss gets; empty: none
  ConstraintHandle constraint = {};    ///< what each update brings it back to; empty: nothing
  std::optional<at::ScalarType> dtype = std::nullopt;  ///< the layer's own if absent
};

/// Options that every layer has. A layer's own options struct ends with the same three.
struct LayerOptions {
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// Bytes of files by their names.
using LayerAssets = std::map<std::string, std::string>;

/// A function with weights (keras.layers.Layer): build() names and shapes the weights from the
/// input shapes, call() computes with DTensors as if on one device. A layer knows nothing of
/// meshes; weights are placed by their path.
class Layer {
 public:
  explicit Layer(const LayerOptions& options = {});
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// Keras' class name, "Dense".
  virtual std::string class_name() const = 0;
  /// Keras' constructor arguments, by Keras' names.
  virtual Json config() const;
  /// Output shape for input shapes. Throws ShapeError for inputs that do not fit. Unless
  /// overridden, the layer is built and called without numbers
  /// (keras.layers.Layer.compute_output_spec).
  virtual Shape output_shape(const Shapes& inputs) const;
  /// The shapes of all outputs; a layer that has several overrides this and call_all().
  virtual Shapes output_shapes(const Shapes& inputs) const { return {output_shape(inputs)}; }

  /// Builds on the first call, casts floating inputs to the compute dtype, calls. Without a context
  /// the call is made in that of the layer that makes it. Errors name the layer. Throws ShapeError
  /// if there is not one output, or one of another shape than output_shape() says.
  DTensor operator()(const Inputs& inputs, const CallContext& context = detail::call_context());
  DTensor operator()(const DTensor& input, const CallContext& context = detail::call_context()) {
    return (*this)(Inputs{input}, context);
  }
  /// Calls the layer and gives every output.
  std::vector<DTensor> outputs(const Inputs& inputs,
                               const CallContext& context = detail::call_context());
  /// The symbolic outputs of a call in a Functional model. Throws ShapeError.
  static std::vector<SymbolicTensor> outputs(const std::shared_ptr<Layer>& layer,
                                             const std::vector<SymbolicTensor>& inputs);
  /// Makes the weights, once. Throws ShapeError.
  void build(const Shapes& inputs);
  bool built() const { return built_; }
  /// The inputs it was built for, their batch axis unknown if only planned; empty before.
  const Shapes& built_for() const { return built_for_; }
  /// A model passes inputs on as they are and leaves checks to its layers.
  virtual bool is_model() const { return false; }
  /// Whether it is an operation between a graph's layers, as `x + y` is: no layer of the model, and
  /// inputs are passed on as they are, but for their masks, which end.
  virtual bool is_operation() const { return false; }

  /// The name a model gave or the user chose; "" before either.
  const std::string& name() const { return name_; }
  bool has_own_name() const { return own_name_; }
  /// Where weights' paths begin: "block/hidden".
  const std::string& path() const { return path_.empty() ? name_ : path_; }
  /// Renames this layer, its weights and the layers inside.
  virtual void set_path(const std::string& name, const std::string& path);

  bool trainable() const { return trainable_; }
  /// Freezes or thaws this layer and those inside.
  virtual void set_trainable(bool trainable);
  const DTypePolicy& dtype_policy() const { return policy_; }

  /// Weights in Keras' order: the layer's own as added, then those of each layer inside.
  virtual std::vector<Variable> weights() const;
  /// Those of add_weight() alone, without the layers inside.
  const std::vector<Variable>& own_weights() const { return weights_; }
  std::vector<Variable> trainable_weights() const;
  int64_t count_params() const;

  /// Whether masks pass through the layer, as masks() says (keras.layers.Layer.supports_masking).
  virtual bool supports_masking() const { return false; }
  /// Whether a training step may be recorded and replayed operation by operation, without calling
  /// the layer again (see CompileOptions::record_steps). A program's own layer overrides it where
  /// call() does nothing but operations, add_loss() and assignments.
  virtual bool can_be_replayed() const { return false; }

  /// A penalty on this call, 0-d, that training adds to the compiled loss; for use in call()
  /// (keras.layers.Layer.add_loss).
  void add_loss(const DTensor& loss);
  /// Penalties added since clear_losses(), of the layers inside too, then those of the trainable
  /// weights' regularizers.
  std::vector<DTensor> losses() const;
  void clear_losses();

  /// The tensors that the layer was called on in a graph, and what it gave there; of a model those
  /// of its own graph (keras.Layer.input and output). Throws StateError unless the layer was called
  /// in one place, of a graph that is still there.
  virtual std::vector<SymbolicTensor> symbolic_inputs() const;
  virtual std::vector<SymbolicTensor> symbolic_outputs() const;

  /// Counts the layers of this process as they were made; unnamed layers are numbered in this
  /// order.
  int64_t serial() const { return serial_; }

  /// Places every weight: layer argument, else the map's rule, else deduction, else replicated.
  virtual void place_weights(const LayoutMap& layouts);
  /// Values that the layer's call() computes on its way and hands to place(), and their ranks: at
  /// "path/name" a layout map may place them, as it may "path/input" and "path/output".
  virtual std::map<std::string, int64_t> value_names() const { return {}; }
  /// Places this layer's own values by rules of LayoutMap::value_rules(). Throws LayoutError.
  void place_values(const LayoutMap& rules);
  /// The values that rules place, and where: "output (batch, unsharded)".
  std::vector<std::string> placed_values() const;
  /// The layers inside, in the order of track().
  const std::vector<std::shared_ptr<Layer>>& sublayers() const { return sublayers_; }
  /// For each of them the attribute that it was tracked as; empty for none.
  const std::vector<std::string>& attributes() const { return attributes_; }

  /// What belongs to the layer beside weights and config(), as files of a name and their bytes,
  /// such as a vocabulary (Keras' save_assets).
  virtual LayerAssets assets() const { return {}; }
  /// Takes what assets() of an equal layer gave. Throws ConfigError naming the layer and the file.
  virtual void load_assets(const LayerAssets& assets);

 protected:
  /// Makes a layer part of this one, so that its weights are trained, saved and placed; returns it.
  /// Throws ConfigError for a layer that holds this one.
  LayerHandle track(const LayerHandle& layer);
  /// Does so under the name of an attribute, by which Keras' files of weights know a layer inside:
  /// what a class in Python says as `self.first = Dense(4)` is `track("first", Dense(4))`. Throws
  /// ConfigError for a name twice, or one that no attribute can have.
  LayerHandle track(const std::string& attribute, const LayerHandle& layer);
  /// Takes the last layer of track() out again. Throws StateError if there is none.
  LayerHandle untrack_last();
  /// Whether the layer or model that this one is part of gave it its path.
  bool in_model() const { return !path_.empty(); }
  /// Names the layers inside that have no name yet, if this layer is part of no other.
  void name_sublayers();
  /// The layers inside in the order in which unnamed ones are numbered.
  virtual std::vector<std::shared_ptr<Layer>> naming_order() const { return sublayers_; }
  /// Names and shapes weights with add_weight().
  virtual void make_weights(const Shapes&) {}
  /// Builds the layers inside for these inputs, by default by planning a call, so that the layer is
  /// whole before any number is computed.
  virtual void build_sublayers(const Shapes& inputs);
  /// The shapes of the outputs of a call without numbers, or on zeros if it reads them; an extent
  /// that depends on an unknown one is -1. Builds the layer.
  Shapes planned_output_shapes(const Shapes& inputs) const;
  /// Computes the output; a layer of several outputs overrides call_all() instead.
  virtual DTensor call(const Inputs& inputs, const CallContext& context);
  virtual std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) {
    return {call(inputs, context)};
  }

  /// The dtype of the outputs of a call in a graph, for input shapes.
  virtual at::ScalarType symbolic_dtype(const Shapes&) const { return policy_.compute; }
  /// The same for each output, where they differ.
  virtual std::vector<at::ScalarType> symbolic_dtypes(const Shapes& inputs, size_t outputs) const {
    return std::vector<at::ScalarType>(outputs, symbolic_dtype(inputs));
  }

  /// The mask of each output that call() gave none, undefined for none; the first input's for all
  /// unless overridden (keras.layers.Layer.compute_mask). `inputs` are in the compute dtype.
  virtual std::vector<DTensor> masks(const Inputs& inputs, size_t outputs);

  /// A weight at "path/name"; drawn when first read. Its seed follows from the global seed and the
  /// path.
  Variable add_weight(const std::string& name, const Shape& shape,
                      const InitializerHandle& initializer, const WeightOptions& options = {});
  /// The layer argument that places a weight ("kernel_layout"), over any layout map.
  void set_weight_layout(const std::string& weight, const LayoutSpec& layout);
  /// The shape of the one input. Throws ShapeError for none or several.
  const Shape& single_input(const Shapes& inputs) const;
  /// Adds `regularizer` of the output y as a loss, divided by the rows; nothing without a
  /// regularizer (keras.layers.Layer's activity_regularizer).
  void penalize(const RegularizerHandle& regularizer, const DTensor& y);
  /// In call(), a value of value_names() where a rule places it, else as it is: in another layout
  /// the same numbers. Communicates what the relayout does.
  DTensor place(const std::string& name, const DTensor& value) const;
  /// Whether a rule places the first output.
  bool places_output() const;
  /// In call(), what becomes the first output, of its shape, where a rule places that: before a
  /// bias is added to a pending sum, which would be made whole for it, the sum goes there.
  DTensor place_output(const DTensor& value) const;
  /// A weight's value in the compute dtype.
  DTensor read(const Variable& weight) const { return weight.read(policy_.compute); }

 private:
  std::vector<DTensor> call_placed(const Inputs& inputs, const Inputs& given,
                                   const CallContext& context);
  void check_outputs(const Shapes& expected, const std::vector<DTensor>& outputs) const;
  void check_meshes(const Inputs& inputs) const;
  void pass_masks(const Inputs& inputs, std::vector<DTensor>& outputs);
  /// The shapes of a call's outputs if unknown extents are `unknown`.
  Shapes planned_shapes(const Shapes& inputs, int64_t unknown);
  std::string sublayer_prefix() const;
  /// Takes the policy of its path, of those that were in force when it was made.
  void take_policy();
  /// Numbers unnamed layers, and gives all their paths.
  void name_sublayers(const std::string& prefix, std::map<std::string, int64_t>& counts);

  std::string name_;
  bool own_name_ = false;
  std::string path_;
  bool trainable_;
  DTypePolicy policy_;
  /// Where the policy comes from once the layer has a path; null for one that is settled.
  std::shared_ptr<const DTypePolicyMap> policies_;
  bool built_ = false;
  bool building_ = false;
  /// Whether output_shape() is found by a call.
  mutable bool shape_from_call_ = false;
  Shapes built_for_;
  std::vector<Variable> weights_;
  std::vector<std::shared_ptr<Layer>> sublayers_;
  std::vector<std::string> attributes_;
  std::map<std::string, LayoutSpec> weight_layouts_;
  std::vector<DTensor> losses_;
  /// Null where no rule places a value.
  std::shared_ptr<const detail::PlacedValues> values_;
  int64_t serial_;
  std::shared_ptr<const detail::Node> symbolic_call() const;

  int64_t symbolic_calls_ = 0;
  /// The last of them. A graph holds its layers, and not the other way round.
  std::weak_ptr<const detail::Node> symbolic_call_;
};

/// A handle to a layer, as models are made of: copies are the same layer.
class LayerHandle {
 public:
  /// Throws StateError for a null pointer.
  LayerHandle(std::shared_ptr<Layer> layer);  // NOLINT: reads as data
  DTensor operator()(const DTensor& input,
                     const CallContext& context = detail::call_context()) const {
    return (*layer_)(input, context);
  }
  DTensor operator()(const Inputs& inputs,
                     const CallContext& context = detail::call_context()) const {
    return (*layer_)(inputs, context);
  }
  std::vector<DTensor> outputs(const Inputs& inputs,
                               const CallContext& context = detail::call_context()) const {
    return layer_->outputs(inputs, context);
  }
  /// Calls in a Functional model.
  SymbolicTensor operator()(const SymbolicTensor& input) const {
    return (*this)(std::vector<SymbolicTensor>{input});
  }
  /// Throws ShapeError if the layer has several outputs.
  SymbolicTensor operator()(const std::vector<SymbolicTensor>& inputs) const;
  std::vector<SymbolicTensor> outputs(const std::vector<SymbolicTensor>& inputs) const {
    return Layer::outputs(layer_, inputs);
  }
  /// Layer::symbolic_inputs() and symbolic_outputs(), where there is one (keras.Layer.input and
  /// output), for a model of a part of another:
  ///
  ///     Functional features({model.input()}, {hidden.output()});
  ///
  /// Throws ShapeError if there are several.
  SymbolicTensor input() const;
  SymbolicTensor output() const;
  const std::shared_ptr<Layer>& layer() const { return layer_; }
  Layer* operator->() const { return layer_.get(); }

 private:
  std::shared_ptr<Layer> layer_;
};

/// A handle to a layer class of the user's own.
template <class T, class... Args>
LayerHandle make_layer(Args&&... args) {
  return LayerHandle(std::make_shared<T>(std::forward<Args>(args)...));
}

namespace detail {

/// The seed that weights and random layers start from; 0 unless set
/// (keras.utils.set_random_seed).
int64_t global_seed();

}  // namespace detail

/// Sets the seed that first values of weights, draws of layers and the order of shuffled rows
/// follow from (keras.utils.set_random_seed).
void set_random_seed(int64_t seed);

}  // namespace tessera
