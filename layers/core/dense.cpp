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

class DenseLayer final : public LayerOf<DenseLayer, DenseArguments> {
 public:
  static constexpr const char* keras_name = "Dense";
  explicit DenseLayer(const DenseArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_quantized() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  void quantize_weights() override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  DTensor product(const DTensor& x);
  bool is_logits() const;

  Variable kernel_, bias_, kernel_scale_;  ///< kernel_scale_: of an int8 kernel
};

const RegisteredLayerOf<DenseLayer> registered_dense({"lora_rank", "lora_alpha"});

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
}

void DenseLayer::quantize_weights() {
  const Int8Kernel kernel = int8_kernel("k,kn->n", kernel_.value());
  replace_weight(kernel_, kernel.values);
  kernel_scale_ = add_value("kernel_scale", kernel.scale);
}

/// Whether the result may be the logits of a large vocabulary, of which a loss needs not compute
/// the whole.
bool DenseLayer::is_logits() const {
  constexpr int64_t large = 8192;
  return arguments_.units >= large && arguments_.activation.name() == "linear" &&
         !arguments_.activity_regularizer && !places_output() && !remat_region();
}

/// Returns x · kernel in integers.
DTensor DenseLayer::product(const DTensor& x) {
  std::string rows;
  for (int64_t a = 0; a + 1 < x.rank(); ++a) rows += static_cast<char>('A' + a);
  return int8_product(rows + "k,kn->" + rows + "n", x, {read(kernel_), read(kernel_scale_)},
                      [this](const DTensor& sums) { return place_output(sums); });
}

DTensor DenseLayer::call(const Inputs& inputs, const CallContext&) {
  if (is_quantized()) {
    DTensor y = product(inputs[0]);
    if (bias_.defined()) y = y + read(bias_);
    y = arguments_.activation(y);
    penalize(arguments_.activity_regularizer, y);
    return y;
  }
  const bool relu = bias_.defined() && arguments_.activation.name() == "relu" && !places_output();
  DTensor y;
  if (bias_.defined() && places_output()) {
    y = place_output(ops::matmul(inputs[0], read(kernel_))) + read(bias_);
  } else if (is_logits()) {
    return ops::deferred_logits(inputs[0], read(kernel_),
                                bias_.defined() ? read(bias_) : DTensor());
  } else {
    y = bias_.defined() ? ops::dense(inputs[0], read(kernel_), read(bias_), relu)
                        : ops::matmul(inputs[0], read(kernel_));
  }
  if (!relu) y = arguments_.activation(y);
  penalize(arguments_.activity_regularizer, y);
  return y;
}

}  // namespace

Dense::Dense(int64_t units, const DenseOptions& options)
    : LayerHandle(make_layer<DenseLayer>(DenseArguments{options, units})) {}

}  // namespace tessera
