#include <tessera/layers/merging/merge.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/one_dtype.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ConcatenateOptions& o, const Visit& visit) {
  visit("axis", o.axis);
}

namespace {

class ConcatenateLayer final : public LayerOf<ConcatenateLayer, ConcatenateOptions> {
 public:
  static constexpr const char* keras_name = "Concatenate";
  using LayerOf::LayerOf;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;
};

const RegisteredLayerOf<ConcatenateLayer> registered_concatenate;

Shape ConcatenateLayer::output_shape(const Shapes& inputs) const {
  if (inputs.empty()) {
    throw ShapeError(where(), "it takes at least one input", "no inputs",
                     "call it on a list of tensors");
  }
  Shape shape = inputs[0];
  const auto axis = static_cast<size_t>(
      normalize_axis(arguments_.axis, static_cast<int64_t>(shape.size()), where()));
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Shape& input = inputs[i];
    bool shapes_match = input.size() == shape.size();
    for (size_t a = 0; shapes_match && a < shape.size(); ++a) {
      if (a == axis) {
        shape[a] = shape[a] == -1 || input[a] == -1 ? -1 : shape[a] + input[a];
      } else if (shape[a] == -1) {
        shape[a] = input[a];
      } else {
        shapes_match = input[a] == -1 || input[a] == shape[a];
      }
    }
    if (shapes_match) continue;
    throw ShapeError(where(), str("inputs have equal shapes except along axis ", arguments_.axis),
                     to_string(inputs[0]) + " and " + to_string(input),
                     "concatenate along the axis that differs");
  }
  return shape;
}

DTensor ConcatenateLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::concat(with_one_dtype(inputs, dtype_policy().compute), arguments_.axis);
}

std::vector<DTensor> ConcatenateLayer::masks(const Inputs& inputs, size_t) {
  const auto masked = [](const DTensor& input) { return input.mask().defined(); };
  if (std::none_of(inputs.begin(), inputs.end(), masked)) return {};
  // Returns the input's mask, broadcast to all axes but the features.
  const auto steps = [](const DTensor& input) {
    const Shape mask_shape(input.shape().begin(), input.shape().end() - 1);
    DTensor mask = input.mask();
    if (!mask.defined()) {
      return filled(mask_shape, 1, at::kBool, Layout::replicated(input.mesh(), input.rank() - 1));
    }
    if (mask.rank() == input.rank()) mask = ops::any(mask, {-1});
    Shape shape = mask.shape();
    shape.resize(mask_shape.size(), 1);
    return ops::broadcast_to(ops::reshape(mask, shape), mask_shape);
  };
  const int64_t axis = normalize_axis(arguments_.axis, inputs[0].rank(), path());
  if (axis < inputs[0].rank() - 1) {
    std::vector<DTensor> step_masks;
    for (const DTensor& input : inputs) step_masks.push_back(steps(input));
    return {ops::concat(step_masks, axis)};
  }
  DTensor any = steps(inputs[0]);
  for (size_t i = 1; i < inputs.size(); ++i) any = ops::logical_or(any, steps(inputs[i]));
  return {any};
}

}  // namespace

Concatenate::Concatenate(const ConcatenateOptions& options)
    : LayerHandle(make_layer<ConcatenateLayer>(options)) {}

}  // namespace tessera
