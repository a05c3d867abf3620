#include <tessera/layers/merging/merge.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/l2_normalize.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

/// Axes as Keras writes them: two equal ones are a number. Visited in place of the axes.
struct DotAxesOption {
  DotAxes& axes;
};

Json option_json(const DotAxesOption& option) {
  const DotAxes& axes = option.axes;
  return axes[0] == axes[1] ? Json(axes[0]) : Json::array({axes[0], axes[1]});
}

void read_option(JsonObject& config, const std::string& key, DotAxesOption& option) {
  const std::vector<int64_t> axes = take_axes(config, key);
  if (axes.size() != 1 && axes.size() != 2) {
    json_fail(axes, config.path().key(key), "an integer or a list of two");
  }
  option.axes = {axes.front(), axes.back()};
}

namespace {

struct DotArguments : DotOptions {
  DotAxes axes = -1;
};

template <class Visit>
void fields(DotArguments& a, const Visit& visit) {
  DotAxesOption axes{a.axes};
  visit("axes", axes);
  visit("normalize", a.normalize);
}

class DotLayer final : public LayerOf<DotLayer, DotArguments> {
 public:
  static constexpr const char* keras_name = "Dot";
  using LayerOf::LayerOf;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs&, size_t) override { return {}; }

 private:
  /// Returns the summed axis of an input, at least 1.
  int64_t axis_of(size_t input, int64_t rank) const;
};

const RegisteredLayerOf<DotLayer> registered_dot;

int64_t DotLayer::axis_of(size_t input, int64_t rank) const {
  const int64_t axis = normalize_axis(arguments_.axes[input], rank, where());
  if (axis > 0) return axis;
  throw ShapeError(where(), "it sums over an axis after the batch",
                   str("axis ", arguments_.axes[input]), "count axes from 1, or from the last, -1");
}

Shape DotLayer::output_shape(const Shapes& inputs) const {
  if (inputs.size() != 2) {
    throw ShapeError(where(), "it takes two inputs", str(inputs.size()),
                     "call it on a list of two tensors");
  }
  size_t axes[2];
  for (size_t i = 0; i < 2; ++i) {
    axes[i] = static_cast<size_t>(axis_of(i, static_cast<int64_t>(inputs[i].size())));
  }
  const auto agree = [](int64_t a, int64_t b) { return a == b || a == -1 || b == -1; };
  if (!agree(inputs[0][0], inputs[1][0]) || !agree(inputs[0][axes[0]], inputs[1][axes[1]])) {
    throw ShapeError(where(),
                     str("the batches are equal, and axis ", axes[0], " of the first input and ",
                         axes[1], " of the second"),
                     to_string(inputs[0]) + " and " + to_string(inputs[1]),
                     "give the axes that match");
  }
  Shape shape = {inputs[0][0] == -1 ? inputs[1][0] : inputs[0][0]};
  for (size_t i = 0; i < 2; ++i) {
    for (size_t a = 1; a < inputs[i].size(); ++a) {
      if (a != axes[i]) shape.push_back(inputs[i][a]);
    }
  }
  if (shape.size() == 1) shape.push_back(1);
  return shape;
}

DTensor DotLayer::call(const Inputs& inputs, const CallContext&) {
  std::string terms[2];
  std::string output = "a";
  Inputs factors = inputs;
  char letter = 'b';
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = axis_of(i, inputs[i].rank());
    if (arguments_.normalize) factors[i] = l2_normalize(inputs[i], axis);
    terms[i] = "a";
    for (int64_t a = 1; a < inputs[i].rank(); ++a) {
      terms[i] += a == axis ? 'z' : letter;
      if (a != axis) output += letter++;
    }
  }
  const DTensor y = ops::einsum(terms[0] + "," + terms[1] + "->" + output, factors);
  return y.rank() == 1 ? ops::expand_dims(y, 1) : y;
}

}  // namespace

Dot::Dot(DotAxes axes, const DotOptions& options)
    : LayerHandle(make_layer<DotLayer>(DotArguments{options, axes})) {}

}  // namespace tessera
