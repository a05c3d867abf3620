#include <tessera/layers/core/dense.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
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
}

class DenseLayer final : public LayerOf<DenseLayer, DenseArguments> {
 public:
  static constexpr const char* keras_name = "Dense";
  explicit DenseLayer(const DenseArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  Variable kernel_, bias_;
};

const RegisteredLayerOf<DenseLayer> registered_dense({"lora_rank", "lora_alpha",
                                                      "quantization_config"});

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
  kernel_ = add_weight(
      "kernel", {inputs[0].back(), arguments_.units}, arguments_.kernel_initializer,
      {.regularizer = arguments_.kernel_regularizer, .constraint = arguments_.kernel_constraint});
  if (!arguments_.use_bias) return;
  bias_ = add_weight(
      "bias", {arguments_.units}, arguments_.bias_initializer,
      {.regularizer = arguments_.bias_regularizer, .constraint = arguments_.bias_constraint});
}

DTensor DenseLayer::call(const Inputs& inputs, const CallContext&) {
  const bool relu = bias_.defined() && arguments_.activation.name() == "relu" && !places_output();
  DTensor y;
  if (bias_.defined() && places_output()) {
    y = place_output(ops::matmul(inputs[0], read(kernel_))) + read(bias_);
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
