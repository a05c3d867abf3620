#pragma once

#include <initializer_list>
#include <typeinfo>

#include <tessera/framework/graph/input.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera {

/// The options of Sequential.
struct SequentialOptions {
  std::string name = "";  ///< the model's name (default: derived from its class)
  bool trainable = true;  ///< whether training changes its weights
  /// dtype policy of the model, not of its layers (default: the global policy); a model in
  /// "mixed_float16" trains with a LossScaleOptimizer
  std::string dtype = "";
};

namespace detail {

/// The model behind Sequential; user classes may derive from it.
class SequentialModel : public Model {
 public:
  SequentialModel(const std::vector<LayerHandle>& layers, const SequentialOptions& options);
  std::string class_name() const override { return "Sequential"; }
  Json config() const override;
  Shapes output_shapes(const Shapes& inputs) const override;
  /// Whether this is no derived class; those override it themselves.
  bool can_be_replayed() const override { return typeid(*this) == typeid(SequentialModel); }
  /// Throws StateError without an Input.
  std::vector<SymbolicTensor> symbolic_inputs() const override;
  std::vector<SymbolicTensor> symbolic_outputs() const override;
  /// Returns the batch shape of the Input that the model begins with; empty without one.
  const Shape& batch_shape() const { return batch_shape_; }
  /// Appends a layer. Throws StateError once built, unless it begins with an Input; ConfigError for
  /// an Input that is not the first.
  void add(const LayerHandle& layer);
  /// Removes and returns the last layer, with its weights. Throws StateError for a model that has
  /// no layers or is compiled.
  LayerHandle pop();

 protected:
  void build_sublayers(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  void grow(const LayerHandle& layer);
  void check_graph() const;

  std::shared_ptr<Layer> input_;
  Shape batch_shape_;           ///< the Input's batch shape
  SymbolicTensor begin_, end_;  ///< the graph from the Input to the last layer's output
};

}  // namespace detail

/// A chain of layers, each called on the previous one's output (keras.Sequential). If the first is
/// an Input, layers are built as they are added, otherwise by the first call.
class Sequential : public ModelHandle {
 public:
  Sequential(std::initializer_list<LayerHandle> layers, const SequentialOptions& options = {});
  explicit Sequential(const std::vector<LayerHandle>& layers,
                      const SequentialOptions& options = {});
  void add(const LayerHandle& layer) const;
  /// Removes and returns the last layer, before compile() (keras.Sequential.pop). Throws StateError
  /// for a model that has no layers or is compiled.
  LayerHandle pop() const;
};

}  // namespace tessera
