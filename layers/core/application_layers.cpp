// Private layers of keras.applications: read and written as part of models, without a public class.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Multiplies each feature by a weight (ConvNeXt's LayerScale; https://arxiv.org/abs/2103.17239).
class LayerScaleLayer final : public Layer {
 public:
  LayerScaleLayer(double init_values, int64_t projection_dim, const LayerOptions& options)
      : Layer(options), init_values_(init_values), projection_dim_(projection_dim) {}
  std::string class_name() const override { return "LayerScale"; }
  Json config() const override {
    return layer_config(*this,
                        {{"init_values", init_values_}, {"projection_dim", projection_dim_}});
  }
  Shape output_shape(const Shapes& inputs) const override {
    const Shape& input = single_input(inputs);
    if (!input.empty() && input.back() == projection_dim_) return input;
    throw ShapeError("LayerScale " + path(), str("inputs of ", projection_dim_, " features"),
                     to_string(input), "pass inputs as when the model was made");
  }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes&) override {
    gamma_ = add_weight("gamma", {projection_dim_}, Constant(init_values_));
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0] * read(gamma_);
  }

 private:
  double init_values_;
  int64_t projection_dim_;
  Variable gamma_;
};

/// Returns the first input plus `scale` times the second (InceptionResNetV2's).
class CustomScaleLayer final : public Layer {
 public:
  CustomScaleLayer(double scale, const LayerOptions& options) : Layer(options), scale_(scale) {}
  std::string class_name() const override { return "CustomScaleLayer"; }
  Json config() const override { return layer_config(*this, {{"scale", scale_}}); }
  Shape output_shape(const Shapes& inputs) const override {
    if (inputs.size() == 2 && inputs[0] == inputs[1]) return inputs[0];
    throw ShapeError("CustomScaleLayer " + path(), "two inputs of one shape",
                     str(inputs.size(), " inputs"), "pass a list of two");
  }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0] + inputs[1] * scale_;
  }

 private:
  double scale_;
};

const RegisteredLayer registered_layer_scale("LayerScale", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto init_values = config.take<double>("init_values");
  return make_layer<LayerScaleLayer>(init_values, config.take<int64_t>("projection_dim"), options);
});

const RegisteredLayer registered_custom_scale("CustomScaleLayer", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return make_layer<CustomScaleLayer>(config.take<double>("scale"), options);
});

}  // namespace

}  // namespace tessera
