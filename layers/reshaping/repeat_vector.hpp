#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Each row n times (keras.layers.RepeatVector). Shape: (batch, features) -> (batch, n, features).
/// Sharding stays. No communication.
class RepeatVectorLayer final : public Layer {
 public:
  RepeatVectorLayer(int64_t n, const LayerOptions& options);
  std::string class_name() const override { return "RepeatVector"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  int64_t n_;
};

class RepeatVector : public LayerHandle {
 public:
  /// Throws ConfigError for n < 1.
  explicit RepeatVector(int64_t n, const LayerOptions& options = {})
      : LayerHandle(std::make_shared<RepeatVectorLayer>(n, options)) {}
  static RepeatVector from_config(JsonObject& config);
};

}  // namespace tessera
