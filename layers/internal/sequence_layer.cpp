#include <tessera/layers/internal/sequence_layer.hpp>

#include <numeric>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {
namespace {

/// Returns zeros whose rows are sharded like those of x.
DTensor zeros_by_row(const DTensor& x, const Shape& shape, at::ScalarType dtype) {
  std::vector<std::vector<int>> axes(shape.size());
  axes[0] = x.layout().axis(0);
  return filled(shape, 0, dtype, Layout::from_axes(x.mesh(), axes));
}

bool have_shapes(const std::vector<Variable>& states, const std::vector<DTensor>& values) {
  for (size_t s = 0; s < states.size(); ++s) {
    if (states[s].shape() != values[s].shape()) return false;
  }
  return true;
}

bool fits_state(const Shape& expected, const Shape& actual) {
  if (actual.size() != expected.size()) return false;
  for (size_t a = 0; a < actual.size(); ++a) {
    // Symbolic tensors have unknown batches, and perhaps other extents.
    if (actual[a] != expected[a] && actual[a] != -1 && expected[a] != -1) return false;
  }
  return actual.back() == expected.back() || expected.back() == -1;
}

}  // namespace

Shapes SequenceLayer::output_shapes(const Shapes& inputs) const {
  const std::string where = class_name() + " " + path();
  const size_t count = state_shapes({}).size();
  if (inputs.size() != 1 && inputs.size() != 1 + count) {
    throw ShapeError(where,
                     str("inputs are a sequence, then optionally ", count, " initial states"),
                     str(inputs.size(), " inputs"), "pass every state, or none");
  }
  const Shape& x = inputs[0];
  check_sequence(x);
  const Shapes states = state_shapes(x);
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (fits_state(states[i - 1], inputs[i])) continue;
    throw ShapeError(where, "an initial state has shape " + to_string(states[i - 1]),
                     to_string(inputs[i]), "pass one number for each unit of each row");
  }
  Shape output = step_shape(x);
  if (sequence_.return_sequences) output.insert(output.begin() + 1, x[1]);
  Shapes shapes = {output};
  if (sequence_.return_state) shapes.insert(shapes.end(), states.begin(), states.end());
  return shapes;
}

std::vector<LayerState> SequenceLayer::states() const {
  std::vector<LayerState> list;
  if (!sequence_.stateful) return list;
  for (const Shape& shape : state_shapes({})) {
    const size_t s = list.size();
    list.push_back({str("rnn_state_", s), shape, dtype_policy().variable,
                    states_.empty() ? Variable() : states_[s]});
  }
  return list;
}

void SequenceLayer::set_states(const std::vector<DTensor>& values) {
  if (values.empty()) return reset_state();
  if (states_.empty() || !have_shapes(states_, values)) return make_states(values);
  keep_states(values);
}

void SequenceLayer::reset_state() {
  for (Variable& state : states_) {
    state.assign(filled(state.shape(), 0, state.dtype(), state.layout()));
  }
  if (!states_.empty()) reset_version_ = states_[0].value().tag()->version;
}

void SequenceLayer::make_states(const std::vector<DTensor>& values) {
  states_.clear();
  reset_version_.reset();
  for (const DTensor& value : values) {
    states_.emplace_back(str(path(), "/rnn_state_", states_.size()), value, false);
  }
}

void SequenceLayer::prepare_states(const std::vector<DTensor>& zeros) {
  const bool is_reset = states_.empty() || states_[0].value().tag()->version == reset_version_;
  if (states_.empty() || (is_reset && !have_shapes(states_, zeros))) {
    std::vector<DTensor> start;
    for (const DTensor& zero : zeros) {
      start.push_back(filled(zero.shape(), 0, dtype_policy().variable, zero.layout()));
    }
    return make_states(start);
  }
  if (!have_shapes(states_, zeros)) {
    throw ShapeError(
        class_name() + " " + path(),
        str("a stateful layer's batches have ", states_[0].shape()[0], " rows, as before"),
        str(zeros[0].size(0)), "pass batches of one size, or call reset_state()");
  }
  // Placing would end a capture, and is not needed for correct values.
  for (size_t s = 0; s < states_.size() && !tracer(); ++s) {
    Variable& state = states_[s];
    const Layout& used = state.placement().use ? *state.placement().use : state.layout();
    if (!(used == zeros[s].layout())) state.place({state.shape(), zeros[s].layout()});
  }
}

std::vector<DTensor> SequenceLayer::first_states(const Inputs& inputs) {
  const DTensor& x = inputs[0];
  std::vector<DTensor> states;
  for (const Shape& shape : state_shapes(x.shape())) {
    const bool again = !states.empty() && states.back().shape() == shape;
    states.push_back(again ? states.back() : zeros_by_row(x, shape, x.dtype()));
  }
  const bool keeps = sequence_.stateful && !is_abstract();
  if (keeps) prepare_states(states);
  if (inputs.size() > 1) return {inputs.begin() + 1, inputs.end()};
  // Without the tape, because keep_states() assigns them before the backward pass.
  const NoRecording no_tape;
  for (size_t s = 0; keeps && s < states.size(); ++s) {
    states[s] = ops::stop_gradient(read(states_[s]));
  }
  return states;
}

void SequenceLayer::keep_states(const std::vector<DTensor>& states) {
  if (!sequence_.stateful || is_abstract()) return;
  for (size_t s = 0; s < states_.size(); ++s) states_[s].assign(states[s]);
}

/// State of the loop over time.
struct SequenceLayer::LoopState {
  std::vector<DTensor> states;
  DTensor output;                ///< output of the latest step
  std::vector<DTensor> outputs;  ///< outputs of all steps, with return_sequences
  DTensor sequence;              ///< or all of them: (batch, time, …)
};

/// Returns each step's mask with the rank of a state; empty without a mask.
std::vector<DTensor> SequenceLayer::step_masks(const DTensor& x) const {
  DTensor mask = x.mask();
  if (!mask.defined()) return {};
  if (const Shape steps = {x.size(0), x.size(1)}; mask.shape() != steps) {
    throw ShapeError(class_name() + " " + path(),
                     "a mask has axes batch and time, " + to_string(steps), to_string(mask.shape()),
                     "mask steps, not features");
  }
  const size_t rank = state_shapes(x.shape())[0].size();
  for (size_t a = 1; a < rank; ++a) mask = ops::expand_dims(mask, -1);
  return ops::unstack(mask, 1);
}

void SequenceLayer::run(const DTensor& x, const CallContext& context, LoopState& loop) {
  const Steps all = steps(x, context);
  const std::vector<DTensor> masks = step_masks(x);
  DTensor zero;
  if (!masks.empty()) loop.output = zero = zeros_by_row(x, step_shape(x.shape()), x.dtype());
  // The last output is that of the last step that counts, whatever zero_output_for_mask says.
  const bool zeros = sequence_.zero_output_for_mask && sequence_.return_sequences;
  for (size_t i = 0; i < all.inputs.size(); ++i) {
    const size_t t = sequence_.go_backwards ? all.inputs.size() - 1 - i : i;
    std::vector<DTensor> next = all.step(all.inputs[t], loop.states);
    const DTensor output = next[0];
    next.erase(next.begin());
    if (masks.empty()) {
      loop.output = output;
    } else {
      loop.output = ops::where(masks[t], output, zeros ? zero : loop.output);
      for (size_t s = 0; s < next.size(); ++s) {
        next[s] = ops::where(masks[t], next[s], loop.states[s]);
      }
    }
    loop.states = std::move(next);
    if (sequence_.return_sequences) loop.outputs.push_back(loop.output);
  }
}

bool SequenceLayer::run_all(const Inputs& inputs, const CallContext& context, LoopState& loop) {
  const DTensor& x = inputs[0];
  const DTensor mask = x.mask();
  // The output of steps that are masked from the start on is 0, whatever the states are.
  const bool other_outputs = sequence_.stateful || inputs.size() > 1;
  if (mask.defined() && (other_outputs || mask.shape() != Shape{x.size(0), x.size(1)}))
    return false;
  std::optional<AllSteps> all = all_steps(x, context, loop.states, mask);
  if (!all) return false;
  loop.states = std::move(all->states);
  if (sequence_.return_sequences) {
    std::vector<int64_t> axes(all->outputs.shape().size());
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[0], axes[1]);
    loop.sequence = ops::transpose(all->outputs, axes);
    if (mask.defined() && sequence_.zero_output_for_mask) {
      const DTensor kept = sequence_.go_backwards ? ops::flip(mask, {1}) : mask;
      loop.sequence = ops::where(ops::expand_dims(kept, -1), loop.sequence, 0.0);
    }
  } else {
    loop.output = loop.states[0];
  }
  return true;
}

std::vector<DTensor> SequenceLayer::call_all(const Inputs& inputs, const CallContext& context) {
  LoopState loop;
  loop.states = first_states(inputs);
  if (!run_all(inputs, context, loop)) run(inputs[0], context, loop);
  if (sequence_.return_sequences && !loop.sequence.defined()) {
    loop.sequence = ops::stack(loop.outputs, 1);
  }
  keep_states(loop.states);
  std::vector<DTensor> results = {sequence_.return_sequences ? loop.sequence : loop.output};
  if (sequence_.return_state) {
    results.insert(results.end(), loop.states.begin(), loop.states.end());
  }
  for (const DTensor& y : results) penalize(sequence_.activity_regularizer, y);
  return results;
}

std::vector<DTensor> SequenceLayer::masks(const Inputs& inputs, size_t outputs) {
  std::vector<DTensor> list(outputs);
  if (sequence_.return_sequences) list[0] = inputs[0].mask();
  return list;
}

}  // namespace tessera::detail
