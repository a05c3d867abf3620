#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A layer that is made of others (keras.layers.Wrapper): their weights are its own, at
/// "path/inner/weight". What is left to a derived class: config(), shapes, building and calling
/// them.
class WrapperLayer : public Layer {
 public:
  void set_path(const std::string& name, const std::string& path) override;
  void set_trainable(bool trainable) override;
  void place_weights(const LayoutMap& layouts) override;
  std::vector<Variable> weights() const override;
  std::vector<std::shared_ptr<Layer>> sublayers() const override { return inner_; }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  explicit WrapperLayer(const LayerOptions& options) : Layer(options) {}
  /// The layer of the handle, now a part of this one. Throws ConfigError for a model or no layer.
  std::shared_ptr<Layer> add_inner(const LayerHandle& handle);
  const std::shared_ptr<Layer>& inner(size_t i) const { return inner_[i]; }
  /// Gives the layers their paths, now that this one's is known.
  void make_weights(const Shapes& inputs) override;

 private:
  void name_inner();

  std::vector<std::shared_ptr<Layer>> inner_;
};

/// A layer as Keras writes it, without what it is built for.
Json wrapped_json(const Layer& layer);

}  // namespace tessera::detail
