#pragma once

#include <tessera/layers/recurrent/wrapper.hpp>

namespace tessera {

/// A layer on each step of a sequence, with the same weights (keras.layers.TimeDistributed). Shape:
/// (batch, time, …) -> (batch, time, …) of the layer's output for (batch, …). A mask of the
/// sequence stays, and its part of a step goes to a layer that supports masks. Axis `time` is
/// gathered where it is cut; the others are the layer's.
class TimeDistributedLayer final : public WrapperLayer {
 public:
  TimeDistributedLayer(const LayerHandle& layer, const LayerOptions& options);
  std::string class_name() const override { return "TimeDistributed"; }
  Json config() const override;
  /// Throws ShapeError for fewer than 3 axes or no known number of steps.
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

class TimeDistributed : public LayerHandle {
 public:
  /// Throws ConfigError for a model or no layer.
  explicit TimeDistributed(const LayerHandle& layer, const LayerOptions& options = {})
      : LayerHandle(std::make_shared<TimeDistributedLayer>(layer, options)) {}
  static TimeDistributed from_config(JsonObject& config);
};

}  // namespace tessera
