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
class MetricHandle;

namespace detail {

class RandomStream;

}  // namespace detail

/// The context of a layer call: training or inference, random numbers, key-value cache.
struct CallContext {
  bool training = false;
  std::shared_ptr<detail::RandomStream> random = nullptr;  ///< null: draws use seed 0, step 0
  /// Cache of the preceding time steps; null: the inputs hold the full sequence.
  std::shared_ptr<KeyValueCache> cache = nullptr;
};

namespace detail {

/// Returns the context of the layer call this thread is in; outside of any call, inference.
const CallContext& call_context();

class PlacedValues;
struct LayerRemat;

}  // namespace detail

/// The input tensors of a layer call; most layers take one.
using Inputs = std::vector<DTensor>;
/// Global shapes of a layer's inputs or outputs; -1 is an unknown extent, such as the batch size.
using Shapes = std::vector<Shape>;

/// Options of Layer::add_weight() besides name, shape and initializer.
struct WeightOptions {
  bool trainable = true;               ///< whether it is trained, if the layer is trainable
  RegularizerHandle regularizer = {};  ///< penalty on it, added to the loss (default: none)
  ConstraintHandle constraint = {};    ///< constraint applied after each update (default: none)
  std::optional<at::ScalarType> dtype = std::nullopt;  ///< default: the policy's variable dtype
  /// The axes in the order of their memory, from the one whose indices are farthest apart to the
  /// one whose indices are adjacent (default: row-major). Gradients and an optimizer's slots have
  /// it too; files and full() do not. For operations that read a weight fastest in that order.
  std::vector<int64_t> memory_order = {};
};

/// Options of Layer::enable_lora() besides the rank.
struct LoraOptions {
  std::optional<double> alpha =
      std::nullopt;  ///< the product's factor times the rank (default: the rank)
  InitializerHandle a_initializer = "he_uniform";  ///< initializer of A
  InitializerHandle b_initializer = "zeros";       ///< initializer of B
  /// Whether A has all axes of the kernel that are inputs, and B all others, as in `peft`; by
  /// default, as in Keras, A has all but the last. Differs for an EinsumDense whose kernel has more
  /// than two axes, such as the query projection of attention.
  bool as_matrix = false;
};

/// Options that every layer has. A layer's own options struct ends with the same three.
struct LayerOptions {
  std::string name = "";   ///< the layer's name, the last part of path() (default: assigned)
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether the weights are trained
};

/// The module in which Python defines a class, and the name under which it is registered there,
/// "package>Class".
struct PythonNames {
  std::string module = "";
  std::string registered_name = "";
};

/// A layer's asset files: contents by file name.
using LayerAssets = std::map<std::string, std::string>;

/// A function with weights (keras.layers.Layer). make_weights() creates the weights from the input
/// shapes; call() computes with DTensors as if on one device. A layer need not know the mesh: a
/// layout map places its weights and values by their paths, unless its own layout argument does.
class Layer {
 public:
  explicit Layer(const LayerOptions& options = {});
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// The class name in configurations; Keras' name for Keras' layers, "Dense".
  virtual std::string class_name() const = 0;
  /// Returns the constructor arguments under Keras' names.
  virtual Json config() const;
  /// Returns the output shape for these input shapes. Throws ShapeError for inputs that do not fit.
  /// By default the layer is built and called abstractly, without computing values
  /// (keras.layers.Layer.compute_output_spec).
  virtual Shape output_shape(const Shapes& inputs) const;
  /// Returns the shapes of all outputs. A layer with several outputs overrides this and call_all().
  virtual Shapes output_shapes(const Shapes& inputs) const { return {output_shape(inputs)}; }

  /// Calls the layer: builds it if needed, casts floating inputs to the compute dtype and runs
  /// call(), in which default_mesh() is that of the first input. `context` defaults to that of the
  /// enclosing layer call. A compiled model's first call places its weights. Errors name the layer.
  /// Throws ShapeError unless there is exactly one output, whose shape is output_shape()'s, and
  /// MeshError for inputs that are not on the mesh of the weights.
  DTensor operator()(const Inputs& inputs, const CallContext& context = detail::call_context());
  DTensor operator()(const DTensor& input, const CallContext& context = detail::call_context()) {
    return (*this)(Inputs{input}, context);
  }
  /// Calls the layer and returns all outputs.
  std::vector<DTensor> outputs(const Inputs& inputs,
                               const CallContext& context = detail::call_context());
  /// Calls `layer` on symbolic tensors of a Functional model and returns its symbolic outputs.
  /// Throws ShapeError.
  static std::vector<SymbolicTensor> outputs(const std::shared_ptr<Layer>& layer,
                                             const std::vector<SymbolicTensor>& inputs);
  /// Creates the weights, and places those of a compiled model; later calls do nothing. Throws
  /// ShapeError.
  void build(const Shapes& inputs);
  bool built() const { return built_; }
  /// The input shapes of build(), with batch size -1 if it ran in an abstract call; empty before
  /// build().
  const Shapes& built_for() const { return built_for_; }
  /// Whether the layer is a model, which passes its inputs on uncast and leaves checks to its
  /// layers.
  virtual bool is_model() const { return false; }
  /// Whether this is an operation between the layers of a graph, such as `x + y`: not listed among
  /// the model's layers, called on uncast inputs and without mask propagation.
  virtual bool is_operation() const { return false; }

  /// The name chosen by the user or assigned by the model; "" before either.
  const std::string& name() const { return name_; }
  bool has_own_name() const { return own_name_; }
  /// The prefix of the weights' paths: "block/hidden".
  const std::string& path() const { return path_.empty() ? name_ : path_; }
  /// Renames this layer, its weights and its sublayers.
  virtual void set_path(const std::string& name, const std::string& path);

  bool trainable() const { return trainable_; }
  /// Freezes or unfreezes this layer and its sublayers.
  virtual void set_trainable(bool trainable);
  const DTypePolicy& dtype_policy() const { return policy_; }

  /// Replaces the kernel of a built layer by integers with scales, for predictions in integer
  /// arithmetic (keras.layers.Layer.quantize). `mode` is "int8". The integers are not trainable;
  /// biases are. Throws StateError before build() and for a quantized layer, ConfigError for
  /// another mode and for a class without can_be_quantized().
  virtual void quantize(const std::string& mode);
  /// Whether quantize() is defined for this class.
  virtual bool can_be_quantized() const { return false; }
  /// Whether quantize() was called, or the configuration of a quantized layer was read.
  bool is_quantized() const { return !policy_.quantization_mode.empty(); }

  /// Gives a built layer an adapter (keras.layers.Dense.enable_lora): the kernel is frozen, and
  /// alpha / rank · A · B is added to it, of two small matrices that are trained instead. They are
  /// float32 and have the kernel's regularizer; their paths are the kernel's with "lora_" before
  /// the name and "_a" or "_b" after it: "hidden/lora_kernel_a". Without a rule of the layout map,
  /// their axes are sharded as the kernel's. A compiled model is compiled again before further
  /// training. For Dense, EinsumDense, Embedding and ReversibleEmbedding, also quantized ones.
  /// Throws StateError before build() and for a layer that has an adapter, ConfigError for a rank
  /// below 1, a weight with a constraint and for other classes.
  void enable_lora(int64_t rank, const LoraOptions& options = {});
  /// Whether enable_lora() is defined for this class.
  bool can_have_lora() const;
  /// Whether the layer has an adapter.
  bool has_lora() const;
  /// Adds the adapters of this layer and those inside it to their kernels, of which training goes
  /// on, and removes them; int8 kernels are quantized again. Collective.
  void merge_lora();

  /// Returns the weights in Keras' order: the layer's own as added, those made trainable first,
  /// then those of each sublayer.
  virtual std::vector<Variable> weights() const;
  /// The weights of add_weight(), without those of sublayers.
  const std::vector<Variable>& own_weights() const { return weights_; }
  std::vector<Variable> trainable_weights() const;
  int64_t count_params() const;

  /// Whether the layer propagates masks, by masks() (keras.layers.Layer.supports_masking).
  virtual bool supports_masking() const { return false; }
  /// Whether a training step may be captured and replayed operation by operation, without calling
  /// the layer again (see CompileOptions::record_steps). Override it in your own layer if call()
  /// consists of operations, add_loss() and assignments only.
  virtual bool can_be_replayed() const { return false; }

  /// Returns the metrics that this layer or model updates itself, in the order of logs; the same
  /// ones on every call (keras.layers.Layer.metrics). fit and evaluate reset and log them like
  /// those of compile(): a layer's as "path/name", a trained model's own by name.
  virtual std::vector<MetricHandle> trackers() const;

  /// Adds a 0-d penalty to the training loss of this step; for use in call()
  /// (keras.layers.Layer.add_loss).
  void add_loss(const DTensor& loss);
  /// Returns the penalties added since clear_losses() by this layer and its sublayers, then those
  /// of the trainable weights' regularizers.
  std::vector<DTensor> losses() const;
  void clear_losses();

  /// Returns the symbolic inputs or outputs of the layer's only call in a graph; for a model, those
  /// of its own graph (keras.layers.Layer.input and output). Throws StateError unless the layer was
  /// called exactly once, in a graph that still exists.
  virtual std::vector<SymbolicTensor> symbolic_inputs() const;
  virtual std::vector<SymbolicTensor> symbolic_outputs() const;

  /// How Python names a class of one's own, as the file said from which the layer was read.
  PythonNames python_names() const { return python_names_ ? *python_names_ : PythonNames(); }
  void set_python_names(PythonNames names) {
    python_names_ = std::make_shared<PythonNames>(std::move(names));
  }

  /// The layer's number in order of construction in this process; unnamed layers are numbered in
  /// this order.
  int64_t serial() const { return serial_; }

  /// Places every weight by the first of: the layer's own layout argument, a rule of the map,
  /// deduction from the kernel, replication.
  virtual void place_weights(const LayoutMap& layouts);
  /// Returns the intermediate values that call() passes to place(), with their ranks. A layout map
  /// may place them at "PATH/NAME", like "PATH/input" and "PATH/output".
  virtual std::map<std::string, int64_t> value_names() const { return {}; }
  /// Places this layer's own values by rules of LayoutMap::value_rules(). Throws LayoutError.
  void place_values(const LayoutMap& rules);
  /// Sets the rule by which calls of this layer are rematerialized; null: none.
  void set_remat_rule(const RematRule* rule);
  /// Describes the values that rules place: "output (batch, unsharded)".
  std::vector<std::string> placed_values() const;
  /// The sublayers, in the order of track().
  const std::vector<std::shared_ptr<Layer>>& sublayers() const { return sublayers_; }
  /// The attribute name of each sublayer; empty if it was tracked without one.
  const std::vector<std::string>& attributes() const { return attributes_; }

  /// Returns the layer's state besides weights and config(), such as a vocabulary, as files (Keras'
  /// save_assets).
  virtual LayerAssets assets() const { return {}; }
  /// Restores the files of assets(). Throws ConfigError naming the layer and the file.
  virtual void load_assets(const LayerAssets& assets);

 protected:
  /// Adds a sublayer, whose weights are then trained, saved and placed with this layer's, and
  /// returns it. Throws ConfigError for a layer that contains this one.
  LayerHandle track(const LayerHandle& layer);
  /// Adds a sublayer under an attribute name, by which Keras' weight files address it: Python's
  /// `self.first = Dense(4)` is `track("first", Dense(4))`. Throws ConfigError for a name that is
  /// taken or is no Python identifier.
  LayerHandle track(const std::string& attribute, const LayerHandle& layer);
  /// Removes and returns the sublayer tracked last. Throws StateError if there is none.
  LayerHandle untrack_last();
  /// Whether an enclosing layer or model has assigned this layer's path.
  bool in_model() const { return !path_.empty(); }
  /// Names the sublayers that have no name yet, unless an enclosing layer will.
  void name_sublayers();
  /// Names the last sublayer, if the others have names; as name_sublayers(), in constant time.
  void name_last_sublayer();
  /// Returns the sublayers in the order in which unnamed ones are numbered.
  virtual std::vector<std::shared_ptr<Layer>> naming_order() const { return sublayers_; }
  /// Creates the weights with add_weight().
  virtual void make_weights(const Shapes&) {}
  /// Builds the sublayers for these inputs, by default by an abstract call, so that all weights
  /// exist before anything is computed.
  virtual void build_sublayers(const Shapes& inputs);
  /// Places the weights of a compiled model that is not part of another, once it is built; called
  /// by build() and by calls.
  virtual void place_compiled() {}
  /// Returns the output shapes of an abstract call, or of a call on zeros if call() reads values.
  /// An extent that depends on an unknown one is -1. Builds the layer.
  Shapes planned_output_shapes(const Shapes& inputs) const;
  /// Computes the output. A layer with several outputs overrides call_all() instead.
  virtual DTensor call(const Inputs& inputs, const CallContext& context);
  virtual std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) {
    return {call(inputs, context)};
  }

  /// Returns the dtype of the symbolic outputs (default: the compute dtype).
  virtual at::ScalarType symbolic_dtype(const Shapes&) const { return policy_.compute; }
  /// Returns the dtype of each symbolic output; overridden if they differ.
  virtual std::vector<at::ScalarType> symbolic_dtypes(const Shapes& inputs, size_t outputs) const {
    return std::vector<at::ScalarType>(outputs, symbolic_dtype(inputs));
  }

  /// Returns the mask of each output, undefined for an output without one; used for outputs that
  /// call() left without a mask. By default, the first input's mask for all
  /// (keras.layers.Layer.compute_mask). `inputs`
  /// are in the compute dtype.
  virtual std::vector<DTensor> masks(const Inputs& inputs, size_t outputs);

  /// Creates the weight "path/name". Its values are drawn when first read, with a seed derived from
  /// the global seed and the path.
  Variable add_weight(const std::string& name, const Shape& shape,
                      const InitializerHandle& initializer, const WeightOptions& options = {});
  /// Sets a weight's layout from a layer argument ("kernel_layout"); overrides the layout map.
  void set_weight_layout(const std::string& weight, const LayoutSpec& layout);
  /// Returns the shape of the only input. Throws ShapeError unless there is exactly one.
  const Shape& single_input(const Shapes& inputs) const;
  /// Adds regularizer(y) / batch size as a loss, if there is a regularizer (keras.layers.Layer's
  /// activity_regularizer).
  void penalize(const RegularizerHandle& regularizer, const DTensor& y);
  /// Reshards the value `name` of value_names(), if a rule places it. To be called in call().
  /// Communication: that of the resharding.
  DTensor place(const std::string& name, const DTensor& value) const;
  /// Whether a rule places the first output.
  bool places_output() const;
  /// Reshards a partial sum that will become the first output, if a rule places that. To be called
  /// in call() before a bias is added: the addition would resolve the sum with an all-reduce.
  DTensor place_output(const DTensor& value) const;
  /// Replaces floating weights by integers and scales, as quantize() says; overridden with
  /// can_be_quantized().
  virtual void quantize_weights() {}
  /// Puts a weight with this value and dtype, which is not trainable, in the place of `weight`: it
  /// has the same path, layout and position in weights().
  void replace_weight(Variable& weight, const DTensor& value);
  /// Adds a weight with this value, which is not trainable; replicated until it is placed.
  Variable add_value(const std::string& name, const DTensor& value);
  /// Removes weights of add_weight().
  void remove_weights(const std::vector<Variable>& weights);
  /// Returns a weight's value in the compute dtype, for use in call(). Communication: if the weight
  /// must be gathered, the first read of a call gathers all such weights of this layer, in one
  /// all-gather where their layouts and dtypes allow it.
  DTensor read(const Variable& weight) const { return read(weight, policy_.compute); }
  /// read() in another dtype; none means the weight's own.
  DTensor read(const Variable& weight, std::optional<at::ScalarType> dtype) const;

 private:
  std::vector<DTensor> call_placed(const Inputs& inputs, const Inputs& uncast,
                                   const CallContext& context);
  void check_outputs(const Shapes& expected, const std::vector<DTensor>& outputs) const;
  void check_meshes(const Inputs& inputs) const;
  void pass_masks(const Inputs& inputs, std::vector<DTensor>& outputs);
  /// Returns the output shapes of an abstract call in which each -1 of `inputs` is `unknown`.
  Shapes planned_shapes(const Shapes& inputs, int64_t unknown);
  std::string sublayer_prefix() const;
  /// Resolves the dtype policy by this layer's path, in the policy map of its construction time.
  void resolve_policy();
  /// Numbers unnamed sublayers and sets the paths of all.
  void name_sublayers(const std::string& prefix, std::map<std::string, int64_t>& counts);
  void name_last_sublayer(const std::string& prefix);
  /// Returns how often layers of this process got another name.
  static int64_t renamed_layers();

  /// The names of sublayers, for name_last_sublayer().
  struct SublayerNames {
    std::map<std::string, const Layer*> layers;  ///< by name
    std::map<std::string, int64_t> numbers;      ///< next number of each class to try
    size_t count = 0;                            ///< sublayers that have these names
    int64_t renames = 0;                         ///< renamed_layers() then
  };

  std::string name_;
  bool own_name_ = false;
  std::string path_;
  bool trainable_;
  DTypePolicy policy_;
  /// Resolves policy_ once the path is known; null if an option set the policy, or there is no map.
  std::shared_ptr<const DTypePolicyMap> policies_;
  bool built_ = false;
  bool building_ = false;
  /// Whether output_shape() is not overridden and plans a call.
  mutable bool shape_from_call_ = false;
  Shapes built_for_;
  std::vector<Variable> weights_;
  std::vector<std::shared_ptr<Layer>> sublayers_;
  std::vector<std::string> attributes_;
  SublayerNames names_;
  std::map<std::string, LayoutSpec> weight_layouts_;
  std::vector<DTensor> losses_;
  /// Null if no rule places a value.
  std::shared_ptr<const detail::PlacedValues> values_;
  /// The mode of the RematScope in which the layer was made; a RematRule, which takes precedence.
  std::shared_ptr<const detail::LayerRemat> remat_, remat_rule_;
  std::shared_ptr<const PythonNames> python_names_;  ///< null: unknown
  int64_t serial_;
  std::shared_ptr<const detail::Node> symbolic_call() const;

  int64_t symbolic_calls_ = 0;
  /// The last symbolic call; weak, since the graph owns its layers.
  std::weak_ptr<const detail::Node> symbolic_call_;
};

/// A shared handle to a layer, from which models are built: copies refer to the same layer.
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
  /// Calls the layer on a tensor that is replicated on the mesh of its weights, or on
  /// default_mesh() if it has none yet.
  DTensor operator()(const at::Tensor& input) const {
    return (*this)(input, detail::call_context());
  }
  DTensor operator()(const at::Tensor& input, const CallContext& context) const;
  std::vector<DTensor> outputs(const Inputs& inputs,
                               const CallContext& context = detail::call_context()) const {
    return layer_->outputs(inputs, context);
  }
  /// Calls the layer in a Functional model.
  SymbolicTensor operator()(const SymbolicTensor& input) const {
    return (*this)(std::vector<SymbolicTensor>{input});
  }
  /// Throws ShapeError if the layer has several outputs.
  SymbolicTensor operator()(const std::vector<SymbolicTensor>& inputs) const;
  std::vector<SymbolicTensor> outputs(const std::vector<SymbolicTensor>& inputs) const {
    return Layer::outputs(layer_, inputs);
  }
  /// Returns the only symbolic input or output (keras.Layer.input and output), to build a model
  /// from part of another:
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

/// Creates a layer of a user-defined class.
template <class T, class... Args>
LayerHandle make_layer(Args&&... args) {
  return LayerHandle(std::make_shared<T>(std::forward<Args>(args)...));
}

namespace detail {

/// Returns the global seed of weights and random layers (default 0; see set_random_seed).
int64_t global_seed();

}  // namespace detail

/// Sets the global seed of weight initialization, random layers and shuffling
/// (keras.utils.set_random_seed).
void set_random_seed(int64_t seed);

}  // namespace tessera
