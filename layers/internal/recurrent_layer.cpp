#include <tessera/layers/internal/recurrent_layer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {

void RecurrentLayer::check_sequence(const Shape& x) const {
  if (x.size() != 3 || x[2] < 0 || x[1] == 0) {
    throw ShapeError(class_name() + " " + path(),
                     "a sequence has axes batch, time and features, the last one known",
                     to_string(x), "expand or reshape it first");
  }
  check_features(x);
}

Shapes RecurrentLayer::state_shapes(const Shape& x) const {
  return Shapes(spec_.states, {x.empty() ? -1 : x[0], units_});
}

DTensor RecurrentLayer::project(const DTensor& x, const CallContext& context) const {
  const DTensor product = multiply(x, context), bias = input_bias();
  return bias.defined() ? product + bias : product;
}

DTensor RecurrentLayer::multiply(const DTensor& x, const CallContext& context) const {
  const int64_t gates = drops_by_gate() ? spec_.gates() : 1;
  const DTensor factors =
      dropped({gates, x.size(0), 1, x.size(2)}, settings_.dropout, context, x.mesh());
  if (!factors.defined()) return ops::matmul(x, read(kernel_));
  if (gates == 1) return ops::matmul(x * ops::squeeze(factors, {0}), read(kernel_));
  const DTensor kernels = ops::expand_dims(gates_first(read(kernel_), gates), 1);
  const DTensor each = ops::matmul(ops::expand_dims(x, 0) * factors, kernels);
  return ops::flatten(ops::transpose(each, {1, 2, 0, 3}), 2);
}

std::optional<SequenceLayer::AllSteps> RecurrentLayer::all_steps(const DTensor& x,
                                                                 const CallContext& context,
                                                                 const std::vector<DTensor>& states,
                                                                 const DTensor& mask) {
  const std::optional<RecurrentKind> kind = this->kind();
  if (!kind || (context.training && settings_.recurrent_dropout > 0)) return std::nullopt;
  RecurrenceInputs in{*kind, sequence().go_backwards, x, read(recurrent_kernel_), {}, {}, {}, mask};
  // Before the projection, which draws random numbers, and which the loop would compute again.
  if (read(kernel_).layout().used_dims() != 0 || !can_run_recurrence(in)) return std::nullopt;
  // The steps add one bias; a GRU that resets after the product has another one for its inputs.
  const DTensor bias = recurrent_bias();
  in.x = bias.defined() ? project(x, context) : multiply(x, context);
  in.bias = bias.defined() ? bias : input_bias();
  in.h = states[0];
  if (states.size() > 1) in.c = states[1];
  const RecurrenceResult all = detail::recurrence(in);
  const auto last = [&](const DTensor& each) {
    return ops::squeeze(ops::slice(each, 0, each.size(0) - 1, 1), {0});
  };
  AllSteps result{all.h, {last(all.h)}};
  if (all.c.defined()) result.states.push_back(last(all.c));
  return result;
}

SequenceLayer::Steps RecurrentLayer::steps(const DTensor& x, const CallContext& context) {
  Steps steps;
  steps.inputs = ops::unstack(project(x, context), 1);
  steps.step = [this, recurrent = recurrence(x.size(0), context, x.mesh())](
                   const DTensor& projected, const std::vector<DTensor>& states) {
    std::vector<DTensor> next = step(projected, states, recurrent);
    next.insert(next.begin(), next[0]);
    return next;
  };
  return steps;
}

}  // namespace tessera::detail
