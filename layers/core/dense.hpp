#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct DenseOptions {
  ActivationRef activation = {};
  bool use_bias = true;
  InitializerHandle kernel_initializer = "glorot_uniform";
  InitializerHandle bias_initializer = "zeros";
  RegularizerHandle kernel_regularizer = {};
  RegularizerHandle bias_regularizer = {};
  RegularizerHandle activity_regularizer = {};  ///< of the output, divided by the rows
  ConstraintHandle kernel_constraint = {};
  ConstraintHandle bias_constraint = {};
  LayoutSpec kernel_layout = {};
  LayoutSpec bias_layout = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// y = activation(x · kernel + bias) over the last axis of x (keras.layers.Dense).
/// Weights: kernel (in, units), bias (units). Shape: (…, in) -> (…, units).
/// Layouts: a kernel sharded on `units` needs no communication; sharded on `in`, as the last axis
/// of x then is, it costs one all-reduce of the output. config() holds no layouts: they belong to a
/// mesh.
class DenseLayer final : public Layer {
 public:
  DenseLayer(int64_t units, const DenseOptions& options);
  std::string class_name() const override { return "Dense"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  int64_t units_;
  DenseOptions options_;
  Variable kernel_, bias_;
};

class Dense : public LayerHandle {
 public:
  /// Throws ConfigError for units < 1 or an unknown name.
  explicit Dense(int64_t units, const DenseOptions& options = {})
      : LayerHandle(std::make_shared<DenseLayer>(units, options)) {}
  static Dense from_config(JsonObject& config);
};

}  // namespace tessera
