#pragma once

#include <initializer_list>

#include <tessera/framework/model/model.hpp>

namespace tessera {

struct SequentialOptions {
  std::string name = "";
  bool trainable = true;
};

/// A chain of layers: each is called on what the one before it returned (keras.Sequential).
class SequentialModel final : public Model {
 public:
  SequentialModel(const std::vector<LayerHandle>& layers, const SequentialOptions& options);
  std::string class_name() const override { return "Sequential"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  /// Appends a layer. Throws StateError once built.
  void add(const LayerHandle& layer);

 protected:
  void build_layers(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

class Sequential : public ModelHandle {
 public:
  Sequential(std::initializer_list<LayerHandle> layers, const SequentialOptions& options = {});
  explicit Sequential(const std::vector<LayerHandle>& layers,
                      const SequentialOptions& options = {});
  void add(const LayerHandle& layer) const;
};

}  // namespace tessera
