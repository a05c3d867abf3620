#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct PReLUOptions {
  InitializerHandle alpha_initializer = "zeros";
  RegularizerHandle alpha_regularizer = {};
  ConstraintHandle alpha_constraint = {};
  /// Axes of the input, from 1 on, along which one slope serves all: {1, 2} of images gives one for
  /// each channel.
  std::vector<int64_t> shared_axes = {};
  LayoutSpec alpha_layout = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// x for x > 0, else alpha · x with slopes that are learned (keras.layers.PReLU). Weight: alpha, of
/// the input's shape without the batch, 1 along shared axes. Layout and mask stay; the gradient of
/// alpha is pending over what cuts the batch and the shared axes.
class PReLULayer final : public Layer {
 public:
  explicit PReLULayer(const PReLUOptions& options);
  std::string class_name() const override { return "PReLU"; }
  Json config() const override;
  /// Throws ShapeError for an input without features of a known number, and for one that does not
  /// fit the slopes or the shared axes.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  bool is_shared(size_t axis) const;

  PReLUOptions options_;
  Variable alpha_;
};

class PReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a shared axis before 1.
  explicit PReLU(const PReLUOptions& options = {})
      : LayerHandle(std::make_shared<PReLULayer>(options)) {}
  static PReLU from_config(JsonObject& config);
};

}  // namespace tessera
