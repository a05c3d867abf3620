#include <tessera/layers/activation/activation.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(PReLUOptions& o, const Visit& visit) {
  visit("alpha_initializer", o.alpha_initializer);
  visit("alpha_regularizer", o.alpha_regularizer);
  visit("alpha_constraint", o.alpha_constraint);
  visit("shared_axes", o.shared_axes);
}

namespace {

class PReLULayer final : public LayerOf<PReLULayer, PReLUOptions> {
 public:
  static constexpr const char* keras_name = "PReLU";
  explicit PReLULayer(const PReLUOptions& options);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  bool is_shared(size_t axis) const;

  Variable alpha_;
};

const RegisteredLayerOf<PReLULayer> registered_prelu;

PReLULayer::PReLULayer(const PReLUOptions& options) : LayerOf(options) {
  for (const int64_t axis : options.shared_axes) {
    if (axis >= 1) continue;
    throw ConfigError(where(), "shared_axes are axes after the batch, from 1 on",
                      to_string(options.shared_axes), "leave axis 0 out and count from the front");
  }
  if (!options.alpha_layout.empty()) set_weight_layout("alpha", options.alpha_layout);
}

bool PReLULayer::is_shared(size_t axis) const {
  const auto& axes = arguments_.shared_axes;
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

Shape PReLULayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const int64_t rank = static_cast<int64_t>(input.size());
  for (const int64_t axis : arguments_.shared_axes) {
    if (axis < rank) continue;
    throw ShapeError(where(), str("the input has the shared axis ", axis), to_string(input),
                     "name axes of the input");
  }
  bool fits = rank >= 2 && (!built() || alpha_.shape().size() + 1 == input.size());
  for (size_t a = 1; fits && a < input.size(); ++a) {
    if (is_shared(a)) continue;
    fits = input[a] >= 0 && (!built() || input[a] == alpha_.shape()[a - 1]);
  }
  if (fits) return input;
  throw ShapeError(where(),
                   built() ? str("the slopes ", to_string(alpha_.shape()), " fit the input")
                           : "the input has axes of known extents after the batch",
                   to_string(input), "pass inputs as when built, or share the axis");
}

void PReLULayer::make_weights(const Shapes& inputs) {
  Shape shape(inputs[0].begin() + 1, inputs[0].end());
  for (size_t a = 1; a < inputs[0].size(); ++a) {
    if (is_shared(a)) shape[a - 1] = 1;
  }
  alpha_ = add_weight(
      "alpha", shape, arguments_.alpha_initializer,
      {.regularizer = arguments_.alpha_regularizer, .constraint = arguments_.alpha_constraint});
}

DTensor PReLULayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  return ops::relu(x) - read(alpha_) * ops::relu(ops::neg(x));
}

}  // namespace

PReLU::PReLU(const PReLUOptions& options) : LayerHandle(make_layer<PReLULayer>(options)) {}

}  // namespace tessera
