#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct DropoutOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< instead of the model's stream
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// In training, elements are 0 with probability `rate`, the others scaled by 1/(1 − rate)
/// (keras.layers.Dropout). Which ones depends on the global index: the same on every mesh. No
/// communication; shape and layout stay.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(double rate, const DropoutOptions& options);
  std::string class_name() const override { return "Dropout"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return only(inputs); }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double rate_;
  std::optional<int64_t> seed_;
};

class Dropout : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1.
  explicit Dropout(double rate, const DropoutOptions& options = {})
      : LayerHandle(std::make_shared<DropoutLayer>(rate, options)) {}
};

}  // namespace tessera
