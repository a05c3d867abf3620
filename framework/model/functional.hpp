#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/framework/graph/input.hpp>
#include <tessera/framework/graph/symbolic_tensors.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera {

/// The options of Functional.
struct FunctionalOptions {
  std::string name = "";  ///< the model's name (default: derived from its class)
  bool trainable = true;  ///< whether training changes its weights
  /// dtype policy of the model, not of its layers (default: the global policy); a model in
  /// "mixed_float16" trains with a LossScaleOptimizer
  std::string dtype = "";
};

namespace detail {

/// The model behind Functional.
class FunctionalModel final : public Model {
 public:
  /// Throws like Functional().
  FunctionalModel(SymbolicTensors inputs, SymbolicTensors outputs,
                  const FunctionalOptions& options);
  std::string class_name() const override { return "Functional"; }
  Json config() const override;
  Shapes output_shapes(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }
  std::vector<std::string> output_names() const override;
  std::vector<std::string> input_names() const override;
  Shapes input_shapes() const override;

  std::vector<SymbolicTensor> symbolic_inputs() const override { return inputs_.tensors; }
  std::vector<SymbolicTensor> symbolic_outputs() const override { return outputs_.tensors; }
  const SymbolicTensors& inputs() const { return inputs_; }
  /// Returns the calls in execution order, those of Inputs first.
  const std::vector<std::shared_ptr<const Node>>& nodes() const { return nodes_; }
  /// Returns the index of a call among its layer's calls in this model, as Keras counts them.
  int64_t call_index(const Node& node) const { return call_index_.at(&node); }

 protected:
  void build_sublayers(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<std::shared_ptr<Layer>> naming_order() const override;

 private:
  /// A call; values are stored in numbered slots.
  struct Step {
    Layer* layer;
    std::vector<size_t> in;
    std::vector<size_t> masked;  ///< Node::masked
    size_t out;
    std::vector<size_t> last_uses;  ///< slots that no later call reads

    size_t arguments() const { return in.size() - masked.size(); }
  };
  void make_steps();
  void check_count(size_t inputs) const;

  SymbolicTensors inputs_, outputs_;
  std::vector<std::shared_ptr<const Node>> nodes_;
  std::map<const Node*, int64_t> call_index_;
  std::vector<Step> steps_;
  std::vector<size_t> input_slots_, output_slots_;
  size_t slots_ = 0;
};

}  // namespace detail

/// A model of a graph of layers, from inputs to outputs (keras.Model(inputs, outputs)). A layer
/// called several times shares its weights; a model may be a layer. The constructor builds it.
/// Arithmetic and functions of ops may stand between layers:
///
///     Input x({8});
///     Functional residual({x}, {x + ops::relu(Dense(8)(x)) * 0.5});
///
/// Inputs and outputs may have keys, as in `Functional({{"a", a}, {"b", b}}, {{"y", y}})`; tensors
/// are then passed and returned in the order of the keys, and outputs are named by their keys.
class Functional : public ModelHandle {
 public:
  /// Throws ConfigError if the outputs depend on other Inputs, an input was not made by Input(), or
  /// two layers have the same name.
  Functional(SymbolicTensors inputs, SymbolicTensors outputs,
             const FunctionalOptions& options = {});
};

}  // namespace tessera
