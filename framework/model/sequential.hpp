#pragma once

#include <initializer_list>
#include <typeinfo>

#include <tessera/framework/graph/input.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera {

/// The options of Sequential.
struct SequentialOptions {
  std::string name = "";  ///< the model's own; empty: made of its class
  bool trainable = true;  ///< whether training changes its weights
  /// Dtype policy of the model itself, not of its layers: one in "mixed_float16" trains with a
  /// LossScaleOptimizer. Empty: the default one.
  std::string dtype = "";
};

namespace detail {

/// The model behind Sequential, from which programs may derive.
class SequentialModel : public Model {
 public:
  SequentialModel(const std::vector<LayerHandle>& layers, const SequentialOptions& options);
  std::string class_name() const override { return "Sequential"; }
  Json config() const override;
  Shapes output_shapes(const Shapes& inputs) const override;
  /// A class that a program derives from this one answers for itself.
  bool can_be_replayed() const override { return typeid(*this) == typeid(SequentialModel); }
  /// Throws StateError without an Input.
  std::vector<SymbolicTensor> symbolic_inputs() const override;
  std::vector<SymbolicTensor> symbolic_outputs() const override;
  /// The batch shape of the Input it begins with; empty without one.
  const Shape& batch_shape() const { return batch_shape_; }
  /// Appends a layer. Throws StateError once built, unless it begins with an Input; ConfigError for
  /// an Input that is not the first.
  void add(const LayerHandle& layer);
  /// Removes the last layer and gives it, with its weights. Throws StateError for a model without
  /// layers, or that is compiled.
  LayerHandle pop();

 protected:
  void build_sublayers(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  void grow(const LayerHandle& layer);
  void check_graph() const;

  std::shared_ptr<Layer> input_;
  Shape batch_shape_;           ///< the batch shape that the Input gave
  SymbolicTensor begin_, end_;  ///< the graph from the Input to the last layer's output
};

}  // namespace detail

/// A chain of layers: each is called on what the one before it returned (keras.Sequential). If the
/// first is an Input it is built as it grows, else when first called.
class Sequential : public ModelHandle {
 public:
  Sequential(std::initializer_list<LayerHandle> layers, const SequentialOptions& options = {});
  explicit Sequential(const std::vector<LayerHandle>& layers,
                      const SequentialOptions& options = {});
  void add(const LayerHandle& layer) const;
  /// Removes the last layer and gives it, before compile() (keras.Sequential.pop). Throws
  /// StateError for a model without layers, or that is compiled.
  LayerHandle pop() const;
};

}  // namespace tessera
