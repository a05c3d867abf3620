#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/framework/graph/graph_ends.hpp>
#include <tessera/framework/graph/input.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera {

/// The options of Functional.
struct FunctionalOptions {
  std::string name = "";  ///< the model's own; empty: made of its class
  bool trainable = true;  ///< whether training changes its weights
  /// Dtype policy of the model itself, not of its layers: one in "mixed_float16" trains with a
  /// LossScaleOptimizer. Empty: the default one.
  std::string dtype = "";
};

namespace detail {

/// The model behind Functional.
class FunctionalModel final : public Model {
 public:
  /// Throws what Functional() throws.
  FunctionalModel(GraphEnds inputs, GraphEnds outputs, const FunctionalOptions& options);
  std::string class_name() const override { return "Functional"; }
  Json config() const override;
  Shapes output_shapes(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }
  std::vector<std::string> output_names() const override;
  std::vector<std::string> input_names() const override;
  Shapes input_shapes() const override;

  std::vector<SymbolicTensor> symbolic_inputs() const override { return inputs_.tensors; }
  std::vector<SymbolicTensor> symbolic_outputs() const override { return outputs_.tensors; }
  const GraphEnds& inputs() const { return inputs_; }
  /// Calls in the order in which they run, those of Inputs first.
  const std::vector<std::shared_ptr<const Node>>& nodes() const { return nodes_; }
  /// Position of a call among the calls of its layer in this model, as Keras counts them.
  int64_t call_index(const Node& node) const { return call_index_.at(&node); }

 protected:
  void build_sublayers(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<std::shared_ptr<Layer>> naming_order() const override;

 private:
  /// A call; values lie in numbered slots.
  struct Step {
    Layer* layer;
    std::vector<size_t> in;
    std::vector<size_t> masked;  ///< as Node has it
    size_t out;
    std::vector<size_t> last_uses;  ///< slots that nothing later reads

    size_t arguments() const { return in.size() - masked.size(); }
  };
  void make_steps();
  void check_count(size_t inputs) const;

  GraphEnds inputs_, outputs_;
  std::vector<std::shared_ptr<const Node>> nodes_;
  std::map<const Node*, int64_t> call_index_;
  std::vector<Step> steps_;
  std::vector<size_t> input_slots_, output_slots_;
  size_t slots_ = 0;
};

}  // namespace detail

/// A model of a graph of layers, from inputs to outputs (keras.Model(inputs, outputs)). Layers may
/// be called several times and share their weights; a model may be a layer. Built as soon as made.
/// Between layers there may be arithmetic and functions of ops:
///
///     Input x({8});
///     Functional residual({x}, {x + ops::relu(Dense(8)(x)) * 0.5});
///
/// Inputs and outputs may have keys, as in `Functional({{"a", a}, {"b", b}}, {{"y", y}})`; tensors
/// are then given and returned in the order of the keys, and outputs are called by them.
class Functional : public ModelHandle {
 public:
  /// Throws ConfigError if the outputs do not follow from the inputs alone, an input was not made
  /// by Input(), or two layers have one name.
  Functional(detail::GraphEnds inputs, detail::GraphEnds outputs,
             const FunctionalOptions& options = {});
};

}  // namespace tessera
