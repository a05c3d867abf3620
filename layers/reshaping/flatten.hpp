#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct FlattenOptions {
  /// "channels_first": axis 1 holds channels and becomes the last one before the axes merge.
  std::string data_format = "channels_last";
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// All axes after the batch merged into one (keras.layers.Flatten). Shape: (n, …) -> (n, product).
/// The first of them keeps its sharding, and takes over that of the others; shards whose borders
/// fall elsewhere fetch what they lack.
class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const FlattenOptions& options);
  std::string class_name() const override { return "Flatten"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  bool channels_first_;
};

class Flatten : public LayerHandle {
 public:
  /// Throws ConfigError for another data_format.
  explicit Flatten(const FlattenOptions& options = {})
      : LayerHandle(std::make_shared<FlattenLayer>(options)) {}
  static Flatten from_config(JsonObject& config);
};

}  // namespace tessera
