#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Base of a layer of your own that changes what another layer computes (keras.layers.Wrapper). It
/// builds the wrapped layer for its own inputs and writes it into its configuration, under "layer".
///
///     class Doubled final : public Wrapper {
///      public:
///       using Wrapper::Wrapper;
///       std::string class_name() const override { return "Doubled"; }
///       bool can_be_replayed() const override { return true; }
///
///      protected:
///       DTensor call(const Inputs& inputs, const CallContext& context) override {
///         return wrapped()(inputs, context) * 2;
///       }
///     };
///     register_layer("Doubled", [](JsonObject& config) {
///       const LayerOptions options = take_layer_options(config);
///       return make_layer<Doubled>(Wrapper::layer_from(config), options);
///     });
///     const LayerHandle layer = make_layer<Doubled>(Dense(8));
///
/// Weights: the wrapped layer's, at "path/dense/…" for a Dense.
class Wrapper : public Layer {
 public:
  explicit Wrapper(const LayerHandle& layer, const LayerOptions& options = {});
  /// Takes the wrapped layer from a configuration. Throws ConfigError.
  static LayerHandle layer_from(JsonObject& config);
  const LayerHandle& wrapped() const { return layer_; }
  Json config() const override;

 protected:
  void make_weights(const Shapes& inputs) override;

 private:
  LayerHandle layer_;
};

}  // namespace tessera
