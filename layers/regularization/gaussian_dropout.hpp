#pragma once

#include <optional>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct GaussianDropoutOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// In training, x times normal numbers of mean 1 and standard deviation sqrt(rate / (1 - rate))
/// (keras.layers.GaussianDropout). They depend on the global index: the same on every mesh. No
/// communication; shape, layout and mask stay.
class GaussianDropoutLayer final : public Layer {
 public:
  GaussianDropoutLayer(double rate, const GaussianDropoutOptions& options);
  std::string class_name() const override { return "GaussianDropout"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double rate_;
  std::optional<int64_t> seed_;
};

class GaussianDropout : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1.
  explicit GaussianDropout(double rate, const GaussianDropoutOptions& options = {})
      : LayerHandle(std::make_shared<GaussianDropoutLayer>(rate, options)) {}
  static GaussianDropout from_config(JsonObject& config);
};

}  // namespace tessera
