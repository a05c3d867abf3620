#include <tessera/layers/internal/recurrent_layer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/lstm_layer.hpp>
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

DTensor RecurrentLayer::project(const DTensor& x, const DTensor& kernel,
                                const CallContext& context) const {
  const DTensor product = multiply(x, kernel, context), bias = input_bias();
  return bias.defined() ? product + bias : product;
}

DTensor RecurrentLayer::multiply(const DTensor& x, const DTensor& kernel,
                                 const CallContext& context) const {
  const int64_t gates = drops_by_gate() ? spec_.gates() : 1;
  const DTensor factors =
      dropped({gates, x.size(0), 1, x.size(2)}, settings_.dropout, context, x.mesh());
  if (!factors.defined()) return ops::matmul(x, kernel);
  if (gates == 1) return ops::matmul(x * ops::squeeze(factors, {0}), kernel);
  const DTensor kernels = ops::expand_dims(gates_first(kernel, gates), 1);
  const DTensor each = ops::matmul(ops::expand_dims(x, 0) * factors, kernels);
  return ops::flatten(ops::transpose(each, {1, 2, 0, 3}), 2);
}

namespace {

/// Returns the state after the last of all steps.
DTensor last_of(const DTensor& steps) {
  return ops::squeeze(ops::slice(steps, 0, steps.size(0) - 1, 1), {0});
}

}  // namespace

std::optional<SequenceLayer::AllSteps> RecurrentLayer::all_steps(const DTensor& x,
                                                                 const CallContext& context,
                                                                 const std::vector<DTensor>& states,
                                                                 const DTensor& mask) {
  const std::optional<RecurrentKind> kind = this->kind();
  if (!kind || (context.training && settings_.recurrent_dropout > 0)) return std::nullopt;
  const DTensor read_kernel = read(kernel_);
  // Before the projection, which draws random numbers, and which the loop would compute again.
  if (!can_run_recurrence(x.mesh())) return std::nullopt;
  // Sharded kernels are gathered once, where a loop would gather states in each step.
  const Layout whole = Layout::replicated(read_kernel.mesh(), 2);
  const DTensor kernel = ops::relayout(read_kernel, whole);
  RecurrenceInputs in{*kind, sequence().go_backwards, {}, {}, {}, {}, {}, mask};
  in.kernel = ops::relayout(read(recurrent_kernel_), whole);
  const bool drops = context.training && settings_.dropout > 0;
  if (*kind == RecurrentKind::lstm && !mask.defined() && !drops && can_run_lstm_layer(x)) {
    const LstmStates all =
        lstm_layer(x, kernel, in.kernel, input_bias(), states[0], states[1], in.reverse);
    return AllSteps{all.h, {last_of(all.h), all.c}};
  }
  // The steps add one bias; a GRU that resets after the product has another one for its inputs.
  const DTensor bias = recurrent_bias();
  in.x = bias.defined() ? project(x, kernel, context) : multiply(x, kernel, context);
  in.bias = bias.defined() ? bias : input_bias();
  in.h = states[0];
  if (states.size() > 1) in.c = states[1];
  const RecurrenceResult all = detail::recurrence(in);
  AllSteps result{all.h, {last_of(all.h)}};
  if (all.c.defined()) result.states.push_back(last_of(all.c));
  return result;
}

SequenceLayer::Steps RecurrentLayer::steps(const DTensor& x, const CallContext& context) {
  Steps steps;
  steps.inputs = ops::unstack(project(x, read(kernel_), context), 1);
  steps.step = [this, recurrent = recurrence(x.size(0), context, x.mesh())](
                   const DTensor& projected, const std::vector<DTensor>& states) {
    std::vector<DTensor> next = step(projected, states, recurrent);
    next.insert(next.begin(), next[0]);
    return next;
  };
  return steps;
}

}  // namespace tessera::detail
