#include <tessera/layers/core/dense.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(DenseOptions& o, const Visit& visit) {
  visit("activation", o.activation);
  visit("use_bias", o.use_bias);
  kernel_fields(o, visit);
}

namespace {

class DenseLayer final : public Layer {
 public:
  DenseLayer(int64_t units, const DenseOptions& options);
  std::string class_name() const override { return "Dense"; }
  Json config() const override { return layer_config(*this, {{"units", units_}}, options_); }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  int64_t units_;
  DenseOptions options_;
  Variable kernel_, bias_;
};

const RegisteredLayer registered_dense("Dense", [](JsonObject& config) {
  const auto options = layer_options_from<DenseOptions>(config);
  take_nulls(config, {"lora_rank", "lora_alpha", "quantization_config"});
  return Dense(take_extent(config, "units"), options);
});

DenseLayer::DenseLayer(int64_t units, const DenseOptions& options)
    : Layer(common_options(options)), units_(units), options_(options) {
  if (units < 1) {
    throw ConfigError("Dense " + options.name, "units is at least 1", str(units),
                      "give the number of outputs");
  }
  if (options.activation.layer()) track("activation", options.activation.layer());
  if (!options.kernel_layout.empty()) set_weight_layout("kernel", options.kernel_layout);
  if (!options.bias_layout.empty()) set_weight_layout("bias", options.bias_layout);
}

Shape DenseLayer::output_shape(const Shapes& inputs) const {
  Shape shape = single_input(inputs);
  if (shape.size() < 2 || shape.back() < 0) {
    throw ShapeError("Dense " + path(), "the input has a batch axis and a known number of features",
                     to_string(shape), "flatten or expand it first");
  }
  if (built() && shape.back() != kernel_.shape()[0]) {
    throw ShapeError("Dense " + path(),
                     str("the last axis has ", kernel_.shape()[0], " features, as when built"),
                     to_string(shape), "pass inputs of that size");
  }
  shape.back() = units_;
  return options_.activation.output_shape(shape);
}

void DenseLayer::make_weights(const Shapes& inputs) {
  kernel_ = add_weight(
      "kernel", {inputs[0].back(), units_}, options_.kernel_initializer,
      {.regularizer = options_.kernel_regularizer, .constraint = options_.kernel_constraint});
  if (!options_.use_bias) return;
  bias_ = add_weight(
      "bias", {units_}, options_.bias_initializer,
      {.regularizer = options_.bias_regularizer, .constraint = options_.bias_constraint});
}

DTensor DenseLayer::call(const Inputs& inputs, const CallContext&) {
  const bool relu = bias_.defined() && options_.activation.name() == "relu" && !places_output();
  DTensor y;
  if (bias_.defined() && places_output()) {
    y = place_output(ops::matmul(inputs[0], read(kernel_))) + read(bias_);
  } else {
    y = bias_.defined() ? ops::dense(inputs[0], read(kernel_), read(bias_), relu)
                        : ops::matmul(inputs[0], read(kernel_));
  }
  if (!relu) y = options_.activation(y);
  penalize(options_.activity_regularizer, y);
  return y;
}

}  // namespace

Dense::Dense(int64_t units, const DenseOptions& options)
    : LayerHandle(std::make_shared<DenseLayer>(units, options)) {}

}  // namespace tessera
