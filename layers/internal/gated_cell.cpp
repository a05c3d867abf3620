#include <tessera/layers/internal/gated_cell.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

void GatedCell::check_inputs(const Shape& inputs) const {
  if (inputs.size() != 2 || inputs[1] < 0) {
    throw ShapeError(class_name() + " " + path(),
                     "a step has axes batch and features, the last one known", to_string(inputs),
                     "expand or reshape it first");
  }
  check_features(inputs);
}

std::function<DTensor(const DTensor&)> GatedCell::projection(const Shape& inputs,
                                                             const CallContext& context) const {
  const int64_t gates = drops_by_gate() ? spec_.gates() : 1;
  const DTensor factors =
      dropped({gates, inputs[0], inputs[1]}, settings_.dropout, context, default_mesh());
  const DTensor kernel = read(kernel_), bias = input_bias();
  if (factors.defined() && drops_by_gate()) {
    CellSpec all = spec_;
    all.products = {spec_.gates()};
    return [product = RecurrentProduct(all, kernel, bias, factors)](const DTensor& x) {
      return product(x);
    };
  }
  const DTensor factor = factors.defined() ? ops::squeeze(factors, {0}) : DTensor();
  return [=](const DTensor& x) {
    const DTensor y = ops::matmul(factor.defined() ? x * factor : x, kernel);
    return bias.defined() ? y + bias : y;
  };
}

RNNCell::StepFunction GatedCell::begin(const Shape& inputs, const CallContext& context) {
  const auto project = projection(inputs, context);
  const RecurrentProduct recurrent = recurrence(inputs[0], context, default_mesh());
  return [=, this](const DTensor& x, const std::vector<DTensor>& states) {
    std::vector<DTensor> next = next_states(project(x), states, recurrent);
    next.insert(next.begin(), next[0]);
    return next;
  };
}

}  // namespace tessera::detail
