// Private layers of keras.applications: read and written as part of models, without a public class.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct LayerScaleArguments : LayerOptions {
  double init_values = 0;
  int64_t projection_dim = 0;
};

template <class Visit>
void fields(LayerScaleArguments& a, const Visit& visit) {
  RequiredOption init_values{a.init_values};
  RequiredOption projection_dim{a.projection_dim};
  visit("init_values", init_values);
  visit("projection_dim", projection_dim);
}

/// Multiplies each feature by a weight (ConvNeXt's LayerScale; https://arxiv.org/abs/2103.17239).
class LayerScaleLayer final : public LayerOf<LayerScaleLayer, LayerScaleArguments> {
 public:
  static constexpr const char* keras_name = "LayerScale";
  using LayerOf::LayerOf;
  Shape output_shape(const Shapes& inputs) const override {
    const Shape& input = single_input(inputs);
    if (!input.empty() && input.back() == arguments_.projection_dim) return input;
    throw ShapeError(where(), str("inputs of ", arguments_.projection_dim, " features"),
                     to_string(input), "pass inputs as when the model was made");
  }

 protected:
  void make_weights(const Shapes&) override {
    gamma_ = add_weight("gamma", {arguments_.projection_dim}, Constant(arguments_.init_values));
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0] * read(gamma_);
  }

 private:
  Variable gamma_;
};

const RegisteredLayerOf<LayerScaleLayer> registered_layer_scale;

struct CustomScaleArguments : LayerOptions {
  double scale = 0;
};

template <class Visit>
void fields(CustomScaleArguments& a, const Visit& visit) {
  RequiredOption scale{a.scale};
  visit("scale", scale);
}

/// Returns the first input plus `scale` times the second (InceptionResNetV2's).
class CustomScaleLayer final : public LayerOf<CustomScaleLayer, CustomScaleArguments> {
 public:
  static constexpr const char* keras_name = "CustomScaleLayer";
  using LayerOf::LayerOf;
  Shape output_shape(const Shapes& inputs) const override {
    if (inputs.size() == 2 && inputs[0] == inputs[1]) return inputs[0];
    throw ShapeError(where(), "two inputs of one shape", str(inputs.size(), " inputs"),
                     "pass a list of two");
  }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0] + inputs[1] * arguments_.scale;
  }
};

const RegisteredLayerOf<CustomScaleLayer> registered_custom_scale;

}  // namespace

}  // namespace tessera
