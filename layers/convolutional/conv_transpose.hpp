#pragma once

#include <memory>
#include <optional>

#include <tessera/layers/convolutional/conv_base.hpp>

namespace tessera {

/// Options of Conv1DTranspose, Conv2DTranspose.
struct ConvTransposeOptions {
  AxisValues strides = 1;
  std::string padding = "valid";  ///< "valid", "same"
  std::optional<AxisValues> output_padding = std::nullopt;  ///< below the strides; absent: most
  std::string data_format = "";
  AxisValues dilation_rate = 1;
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

/// activation(transposed convolution of x + bias), the adjoint of a convolution
/// (keras.layers.Conv1DTranspose, Conv2DTranspose). Weights: kernel (window…, filters, channels),
/// bias (filters). Shape: (batch, spatial…, channels) -> (batch, spatial'…, filters); an extent n
/// becomes n · stride ("same"), or that and what the window reaches beyond a stride ("valid").
/// Layouts: as ConvLayer's; channels sharded cost one all-reduce of the output.
class ConvTransposeLayer final : public ConvBase {
 public:
  ConvTransposeLayer(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
                     const ConvTransposeOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  /// The output's extents, and the windows of the convolution that leads back to x.
  std::vector<int64_t> extents(const Shape& x, std::vector<WindowAxis>& axes) const;

  int64_t filters_;
  ConvTransposeOptions own_;
  std::optional<std::vector<int64_t>> output_padding_;
  Variable kernel_;
};

class Conv1DTranspose : public LayerHandle {
 public:
  /// Throws ConfigError for arguments that do not go together or an unknown name.
  Conv1DTranspose(int64_t filters, const AxisValues& kernel_size,
                  const ConvTransposeOptions& options = {})
      : LayerHandle(std::make_shared<ConvTransposeLayer>(1, filters, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class Conv2DTranspose : public LayerHandle {
 public:
  Conv2DTranspose(int64_t filters, const AxisValues& kernel_size,
                  const ConvTransposeOptions& options = {})
      : LayerHandle(std::make_shared<ConvTransposeLayer>(2, filters, kernel_size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
