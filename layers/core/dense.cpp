#include <tessera/layers/core/dense.hpp>

#include <tessera/framework/autodiff/internal/remat_region.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/linear_cross_entropy.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/layers/internal/int8_kernel.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct DenseArguments : DenseOptions {
  int64_t units = 0;
};

template <class Visit>
void fields(DenseArguments& a, const Visit& visit) {
  ExtentOption units{a.units};
  visit("units", units);
  visit("activation", a.activation);
  visit("use_bias", a.use_bias);
  kernel_fields(a, visit);
  QuantizationConfigOption quantization;
  visit("quantization_config", quantization);
}

class DenseLayer final : public LayerOf<DenseLayer, DenseArguments, LoraLayer> {
 public:
  static constexpr const char* keras_name = "Dense";
  explicit DenseLayer(const DenseArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_quantized() const override { return true; }
  Json config() const override { return with_adapter(LayerOf::config()); }

 protected:
  void make_weights(const Shapes& inputs) override;
  void quantize_weights() override;
  KernelValues quantized_sum(const DTensor& delta) const override;
  RegularizerHandle kernel_regularizer() const override { return arguments_.kernel_regularizer; }
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  DTensor product(const DTensor& x);
  bool is_logits() const;

  Variable bias_;
};

const RegisteredLayerOf<DenseLayer> registered_dense;

DenseLayer::DenseLayer(const DenseArguments& arguments) : LayerOf(arguments) {
  if (arguments.units < 1) {
    throw ConfigError(where(), "units is at least 1", str(arguments.units),
                      "give the number of outputs");
  }
  if (arguments.activation.layer()) track("activation", arguments.activation.layer());
  if (!arguments.kernel_layout.empty()) set_weight_layout("kernel", arguments.kernel_layout);
  if (!arguments.bias_layout.empty()) set_weight_layout("bias", arguments.bias_layout);
}

Shape DenseLayer::output_shape(const Shapes& inputs) const {
  Shape shape = single_input(inputs);
  if (shape.size() < 2 || shape.back() < 0) {
    throw ShapeError(where(), "the input has a batch axis and a known number of features",
                     to_string(shape), "flatten or expand it first");
  }
  if (built() && shape.back() != kernel_.shape()[0]) {
    throw ShapeError(where(),
                     str("the last axis has ", kernel_.shape()[0], " features, as when built"),
                     to_string(shape), "pass inputs of that size");
  }
  shape.back() = arguments_.units;
  return arguments_.activation.output_shape(shape);
}

void DenseLayer::make_weights(const Shapes& inputs) {
  const Shape kernel = {inputs[0].back(), arguments_.units};
  if (is_quantized()) {
    kernel_ = add_weight("kernel", kernel, "zeros", {.trainable = false, .dtype = at::kChar});
  } else {
    kernel_ = add_weight(
        "kernel", kernel, arguments_.kernel_initializer,
        {.regularizer = arguments_.kernel_regularizer, .constraint = arguments_.kernel_constraint});
  }
  if (arguments_.use_bias) {
    bias_ = add_weight(
        "bias", {arguments_.units}, arguments_.bias_initializer,
        {.regularizer = arguments_.bias_regularizer, .constraint = arguments_.bias_constraint});
  }
  if (is_quantized()) {
    kernel_scale_ = add_weight("kernel_scale", {arguments_.units}, "ones", {.trainable = false});
  }
  make_configured_adapter();
}

void DenseLayer::quantize_weights() {
  const Int8Kernel kernel = int8_kernel("k,kn->n", kernel_.value());
  replace_weight(kernel_, kernel.values);
  kernel_scale_ = add_value("kernel_scale", kernel.scale);
}

DenseLayer::KernelValues DenseLayer::quantized_sum(const DTensor& delta) const {
  const Int8Kernel sum = int8_sum("k,kn->n", {kernel_.value(), kernel_scale_.value()}, delta);
  return {sum.values, sum.scale};
}

/// Whether the result may be the logits of a large vocabulary, of which a loss needs not compute
/// the whole.
bool DenseLayer::is_logits() const {
  constexpr int64_t large = 8192;
  return arguments_.units >= large && arguments_.activation.name() == "linear" &&
         !arguments_.activity_regularizer && !places_output() && !remat_region();
}

/// Returns x · kernel, in integers if that is int8, and with its adapter.
DTensor DenseLayer::product(const DTensor& x) {
  std::string rows;
  for (int64_t a = 0; a + 1 < x.rank(); ++a) rows += static_cast<char>('A' + a);
  const std::string equation = rows + "k,kn->" + rows + "n";
  const DTensor y = is_quantized()
                        ? int8_product(equation, x, {read(kernel_), read(kernel_scale_)},
                                       [this](const DTensor& sums) { return place_output(sums); })
                        : ops::matmul(x, read(kernel_));
  return has_adapter() ? y + adapter_product(equation, x) : y;
}

DTensor DenseLayer::call(const Inputs& inputs, const CallContext&) {
  const bool plain = !is_quantized() && !has_adapter();
  const bool relu =
      plain && bias_.defined() && arguments_.activation.name() == "relu" && !places_output();
  if (!is_quantized() && is_logits()) {
    return ops::deferred_logits(inputs[0], read_adapted(),
                                bias_.defined() ? read(bias_) : DTensor());
  }
  DTensor y;
  if (plain && bias_.defined() && !places_output()) {
    y = ops::dense(inputs[0], read(kernel_), read(bias_), relu);
  } else {
    y = product(inputs[0]);
    if (bias_.defined()) y = place_output(y) + read(bias_);
  }
  if (!relu) y = arguments_.activation(y);
  penalize(arguments_.activity_regularizer, y);
  return y;
}

}  // namespace

Dense::Dense(int64_t units, const DenseOptions& options)
    : LayerHandle(make_layer<DenseLayer>(DenseArguments{options, units})) {}

}  // namespace tessera
