#pragma once

#include <memory>

#include <tessera/layers/convolutional/conv_base.hpp>

namespace tessera {

/// activation(convolution of x with a kernel + bias) in 1 to 3 spatial axes (keras.layers.Conv1D,
/// Conv2D, Conv3D). Weights: kernel (window…, channels / groups, filters), bias (filters). Shape:
/// (batch, spatial…, channels) -> (batch, spatial'…, filters).
/// Layouts: the batch, spatial axes and `filters` sharded pass on; a sharded spatial axis fetches
/// from its neighbours the rows that the window needs; channels sharded, as the kernel's then are,
/// cost one all-reduce of the output.
class ConvLayer final : public ConvBase {
 public:
  ConvLayer(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
            const ConvOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  int64_t filters_;
  Variable kernel_;
};

class Conv1D : public LayerHandle {
 public:
  /// Throws ConfigError for arguments that do not go together or an unknown name.
  Conv1D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {})
      : LayerHandle(std::make_shared<ConvLayer>(1, filters, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class Conv2D : public LayerHandle {
 public:
  Conv2D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {})
      : LayerHandle(std::make_shared<ConvLayer>(2, filters, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class Conv3D : public LayerHandle {
 public:
  Conv3D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options = {})
      : LayerHandle(std::make_shared<ConvLayer>(3, filters, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
