#pragma once

#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Axes after the batch in another order, counted from 1 (keras.layers.Permute): {2, 1} takes
/// (n, a, b) to (n, b, a). Sharding goes with the axes. No communication.
class PermuteLayer final : public Layer {
 public:
  PermuteLayer(std::vector<int64_t> dims, const LayerOptions& options);
  std::string class_name() const override { return "Permute"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  std::vector<int64_t> dims_;
};

class Permute : public LayerHandle {
 public:
  /// Throws ConfigError unless dims holds each of 1, 2, … once.
  explicit Permute(const std::vector<int64_t>& dims, const LayerOptions& options = {})
      : LayerHandle(std::make_shared<PermuteLayer>(dims, options)) {}
  static Permute from_config(JsonObject& config);
};

}  // namespace tessera
