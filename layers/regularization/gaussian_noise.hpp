#pragma once

#include <optional>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct GaussianNoiseOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// In training, x plus normal numbers of mean 0 (keras.layers.GaussianNoise). They depend on the
/// global index: the same on every mesh. No communication; shape, layout and mask stay.
class GaussianNoiseLayer final : public Layer {
 public:
  GaussianNoiseLayer(double stddev, const GaussianNoiseOptions& options);
  std::string class_name() const override { return "GaussianNoise"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double stddev_;
  std::optional<int64_t> seed_;
};

class GaussianNoise : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= stddev <= 1.
  explicit GaussianNoise(double stddev, const GaussianNoiseOptions& options = {})
      : LayerHandle(std::make_shared<GaussianNoiseLayer>(stddev, options)) {}
  static GaussianNoise from_config(JsonObject& config);
};

}  // namespace tessera
