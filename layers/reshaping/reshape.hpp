#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The elements after the batch in row-major order under another shape, one extent of which may be
/// -1 (keras.layers.Reshape). Shape: (n, …) -> (n, target_shape…). Where axes merge, the first of
/// them keeps its sharding and takes over that of the others; where one splits, its sharding stays
/// on the first part; shards whose borders fall elsewhere fetch what they lack.
class ReshapeLayer final : public Layer {
 public:
  ReshapeLayer(Shape target_shape, const LayerOptions& options);
  std::string class_name() const override { return "Reshape"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  Shape target_shape_;
  int64_t known_ = 1;   ///< product of the extents but -1
  int64_t open_ = -1;   ///< axis of the -1, if any
};

class Reshape : public LayerHandle {
 public:
  /// Throws ConfigError for an extent below 1 that is not the only -1.
  explicit Reshape(const Shape& target_shape, const LayerOptions& options = {})
      : LayerHandle(std::make_shared<ReshapeLayer>(target_shape, options)) {}
  static Reshape from_config(JsonObject& config);
};

}  // namespace tessera
