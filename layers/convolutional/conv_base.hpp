#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/layers/reshaping/spatial_layer.hpp>

namespace tessera {

/// Options of Conv1D, Conv2D, Conv3D and, but for `groups`, of their transposes.
struct ConvOptions {
  AxisValues strides = 1;
  std::string padding = "valid";  ///< "valid", "same"; Conv1D also "causal"
  std::string data_format = "";   ///< "channels_last" or "channels_first"
  AxisValues dilation_rate = 1;
  int64_t groups = 1;
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

/// What convolutions share: window arguments, bias, activation and penalty.
class ConvBase : public SpatialLayer {
 public:
  /// Throws ConfigError for an argument that cannot be.
  ConvBase(const std::string& class_name, int64_t spatial, const AxisValues& kernel_size,
           const ConvOptions& options);
  Json config() const override;

 protected:
  const ConvOptions& options() const { return options_; }
  const std::vector<int64_t>& kernel_size() const { return kernel_size_; }
  const std::vector<int64_t>& strides() const { return strides_; }
  const std::vector<int64_t>& dilation_rate() const { return dilation_rate_; }
  /// (window…, last…).
  Shape kernel_shape(std::initializer_list<int64_t> last) const;
  std::vector<WindowAxis> windows(const Shape& x) const {
    return SpatialLayer::windows(x, kernel_size_, strides_, dilation_rate_, options_.padding);
  }
  /// Throws ConfigError unless `value` is at least 1.
  void check_positive(int64_t value, const std::string& argument) const;
  /// Throws ShapeError unless x has channels, as many as when built.
  int64_t channels_of(const Shape& x) const;
  /// Weight "bias" of the outputs; last of the weights.
  void add_bias(int64_t outputs);
  /// y + bias.
  DTensor with_bias(const DTensor& y);
  /// Activation and penalty.
  DTensor epilogue(DTensor y) final;
  Shape finished_shape(const Shape& y) const final;

 private:
  ConvOptions options_;
  std::vector<int64_t> kernel_size_, strides_, dilation_rate_;
  Variable bias_;
};

/// From one options struct to another, what all convolutions have.
template <class To, class From>
To shared_options(const From& o) {
  To to;
  to.strides = o.strides;
  to.padding = o.padding;
  to.data_format = o.data_format;
  to.dilation_rate = o.dilation_rate;
  to.activation = o.activation;
  to.use_bias = o.use_bias;
  to.bias_initializer = o.bias_initializer;
  to.bias_regularizer = o.bias_regularizer;
  to.activity_regularizer = o.activity_regularizer;
  to.bias_constraint = o.bias_constraint;
  to.bias_layout = o.bias_layout;
  to.name = o.name;
  to.dtype = o.dtype;
  to.trainable = o.trainable;
  return to;
}

/// Options from a layer's config, but for those of its kernel, which differ in name.
ConvOptions take_conv_options(JsonObject& config);
/// The weight `prefix`'s initializer, regularizer and constraint, as Keras writes them, and back.
void put_kernel_options(Json& json, const std::string& prefix, const InitializerHandle& initializer,
                        const RegularizerHandle& regularizer, const ConstraintHandle& constraint);
void take_kernel_options(JsonObject& config, const std::string& prefix,
                         InitializerHandle& initializer, RegularizerHandle& regularizer,
                         ConstraintHandle& constraint);

}  // namespace tessera
