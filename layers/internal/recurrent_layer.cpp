#include <tessera/layers/internal/recurrent_layer.hpp>

#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera::detail {
namespace {

/// Reorders (rows, gates · units) to (gates, rows, units).
DTensor gates_first(const DTensor& kernel, int64_t gates) {
  const int64_t units = kernel.size(1) / gates;
  return ops::transpose(ops::reshape(kernel, {kernel.size(0), gates, units}), {1, 0, 2});
}

DTensor make_zero_state(const DTensor& x, int64_t units, at::ScalarType dtype) {
  return filled({x.size(0), units}, 0, dtype,
                Layout::from_axes(x.mesh(), {x.layout().axis(0), {}}));
}

}  // namespace

int64_t CellSpec::gates() const { return std::accumulate(products.begin(), products.end(), 0L); }

RecurrentProduct::RecurrentProduct(const CellSpec& spec, const DTensor& kernel, const DTensor& bias,
                                   const DTensor& dropped) {
  const int64_t units = kernel.size(0);
  const DTensor by_gate = dropped.defined() ? gates_first(kernel, spec.gates()) : DTensor();
  int64_t first = 0;
  for (const int64_t gates : spec.products) {
    if (dropped.defined()) {
      kernels_.push_back(ops::slice(by_gate, 0, first, gates));
      dropped_.push_back(ops::slice(dropped, 0, first, gates));
    } else {
      kernels_.push_back(ops::slice(kernel, 1, first * units, gates * units));
    }
    if (bias.defined()) biases_.push_back(ops::slice(bias, 0, first * units, gates * units));
    first += gates;
  }
}

DTensor RecurrentProduct::operator()(const DTensor& state, size_t i) const {
  DTensor product;
  if (dropped_.empty()) {
    product = ops::matmul(state, kernels_[i]);
  } else {
    const DTensor each = ops::matmul(ops::expand_dims(state, 0) * dropped_[i], kernels_[i]);
    product = ops::flatten(ops::transpose(each, {1, 0, 2}), 1);
  }
  return biases_.empty() ? product : product + biases_[i];
}

RecurrentLayer::RecurrentLayer(const LayerOptions& common, CellSpec spec, int64_t units,
                               RecurrentOptions settings)
    : Layer(common), spec_(std::move(spec)), units_(units), settings_(std::move(settings)) {
  const std::string where = spec_.layer + " " + settings_.name;
  // 4 gates · units · units still fits int64.
  constexpr int64_t max_size = int64_t{1} << 29;
  if (units < 1 || units > max_size) {
    throw ConfigError(where, str("units is from 1 to ", max_size), str(units),
                      "give the number of outputs");
  }
  check_rate(where + ", dropout", settings_.dropout);
  check_rate(where + ", recurrent_dropout", settings_.recurrent_dropout);
}

Shapes RecurrentLayer::output_shapes(const Shapes& inputs) const {
  const std::string where = class_name() + " " + path();
  if (inputs.size() != 1 && inputs.size() != 1 + spec_.states) {
    throw ShapeError(
        where, str("inputs are a sequence, then optionally ", spec_.states, " initial states"),
        str(inputs.size(), " inputs"), "pass every state, or none");
  }
  const Shape& x = inputs[0];
  if (x.size() != 3 || x[2] < 0 || x[1] == 0) {
    throw ShapeError(where, "a sequence has axes batch, time and features, the last one known",
                     to_string(x), "expand or reshape it first");
  }
  if (built() && x[2] != kernel_.shape()[0]) {
    throw ShapeError(where,
                     str("the last axis has ", kernel_.shape()[0], " features, as when built"),
                     to_string(x), "pass inputs of that size");
  }
  const Shape state = {x[0], units_};
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Shape& actual = inputs[i];
    const bool fits = actual.size() == 2 && actual[1] == state[1] &&
                      (actual[0] == state[0] || actual[0] == -1 || state[0] == -1);
    if (!fits)
      throw ShapeError(where, "an initial state has shape " + to_string(state), to_string(actual),
                       "pass one number for each unit of each row");
  }
  Shapes shapes = {settings_.return_sequences ? Shape{x[0], x[1], units_} : state};
  if (settings_.return_state) shapes.insert(shapes.end(), spec_.states, state);
  return shapes;
}

void RecurrentLayer::make_weights(const Shapes& inputs) {
  const RecurrentOptions& s = settings_;
  const int64_t width = spec_.gates() * units_;
  kernel_ = add_weight(spec_.name + "/kernel", {inputs[0][2], width}, s.kernel_initializer,
                       {.regularizer = s.kernel_regularizer, .constraint = s.kernel_constraint});
  recurrent_kernel_ =
      add_weight(spec_.name + "/recurrent_kernel", {units_, width}, s.recurrent_initializer,
                 {.regularizer = s.recurrent_regularizer, .constraint = s.recurrent_constraint});
  if (!s.use_bias) return;
  const Shape shape = spec_.recurrent_bias ? Shape{2, width} : Shape{width};
  bias_ = add_weight(spec_.name + "/bias", shape,
                     spec_.bias_initializer ? spec_.bias_initializer : s.bias_initializer,
                     {.regularizer = s.bias_regularizer, .constraint = s.bias_constraint});
}

/// Draws dropout factors, 0 or 1 / (1 - rate), for all steps at once; undefined without dropout.
DTensor RecurrentLayer::dropped(const Shape& shape, double rate, const CallContext& context,
                                const Mesh& mesh) const {
  if (!context.training || rate == 0) return {};
  const Layout factors_layout = Layout::replicated(mesh, static_cast<int64_t>(shape.size()));
  return ops::dropout(filled(shape, 1, dtype_policy().compute, factors_layout), rate,
                      draw_seed(context, path(), mesh, settings_.seed));
}

DTensor RecurrentLayer::project(const DTensor& x, const CallContext& context) const {
  // As in Keras, each gate has its own dropout mask of the inputs if recurrent_dropout is used.
  const bool by_gate = settings_.recurrent_dropout > 0 && spec_.gates() > 1;
  const int64_t gates = by_gate ? spec_.gates() : 1;
  const DTensor factors =
      dropped({gates, x.size(0), 1, x.size(2)}, settings_.dropout, context, x.mesh());
  DTensor y;
  if (!factors.defined()) {
    y = ops::matmul(x, read(kernel_));
  } else if (gates == 1) {
    y = ops::matmul(x * ops::squeeze(factors, {0}), read(kernel_));
  } else {
    const DTensor kernels = ops::expand_dims(gates_first(read(kernel_), gates), 1);
    const DTensor each = ops::matmul(ops::expand_dims(x, 0) * factors, kernels);
    y = ops::flatten(ops::transpose(each, {1, 2, 0, 3}), 2);
  }
  if (!bias_.defined()) return y;
  return y + (spec_.recurrent_bias ? ops::unstack(read(bias_))[0] : read(bias_));
}

RecurrentProduct RecurrentLayer::recurrence(const DTensor& x, const CallContext& context) const {
  const DTensor factors =
      dropped({spec_.gates(), x.size(0), units_}, settings_.recurrent_dropout, context, x.mesh());
  const bool biased = bias_.defined() && spec_.recurrent_bias;
  return RecurrentProduct(spec_, read(recurrent_kernel_),
                          biased ? ops::unstack(read(bias_))[1] : DTensor(), factors);
}

std::vector<LayerState> RecurrentLayer::states() const {
  std::vector<LayerState> list;
  for (size_t s = 0; settings_.stateful && s < spec_.states; ++s) {
    list.push_back({str("rnn_state_", s),
                    {-1, units_},
                    dtype_policy().variable,
                    states_.empty() ? Variable() : states_[s]});
  }
  return list;
}

void RecurrentLayer::set_states(const std::vector<DTensor>& values) {
  if (values.empty()) return reset_state();
  if (states_.empty() || states_[0].shape() != values[0].shape()) return make_states(values);
  keep_states(values);
}

void RecurrentLayer::reset_state() {
  for (Variable& state : states_) {
    state.assign(filled(state.shape(), 0, state.dtype(), state.layout()));
  }
  if (!states_.empty()) reset_version_ = states_[0].value().tag()->version;
}

void RecurrentLayer::make_states(const std::vector<DTensor>& values) {
  states_.clear();
  reset_version_.reset();
  for (const DTensor& value : values) {
    states_.emplace_back(str(path(), "/rnn_state_", states_.size()), value, false);
  }
}

void RecurrentLayer::prepare_states(const DTensor& zero) {
  const bool is_reset = states_.empty() || states_[0].value().tag()->version == reset_version_;
  if (states_.empty() || (is_reset && states_[0].shape() != zero.shape())) {
    const DTensor start = filled(zero.shape(), 0, dtype_policy().variable, zero.layout());
    return make_states(std::vector<DTensor>(spec_.states, start));
  }
  if (states_[0].shape() != zero.shape()) {
    throw ShapeError(
        class_name() + " " + path(),
        str("a stateful layer's batches have ", states_[0].shape()[0], " rows, as before"),
        str(zero.size(0)), "pass batches of one size, or call reset_state()");
  }
  // Placing would end a capture, and is not needed for correct values.
  for (Variable& state : states_) {
    const Layout& used = state.placement().use ? *state.placement().use : state.layout();
    if (!tracer() && !(used == zero.layout())) state.place({state.shape(), zero.layout()});
  }
}

std::vector<DTensor> RecurrentLayer::first_states(const Inputs& inputs) {
  const DTensor zero = make_zero_state(inputs[0], units_, inputs[0].dtype());
  const bool keeps = settings_.stateful && !is_abstract();
  if (keeps) prepare_states(zero);
  if (inputs.size() > 1) return {inputs.begin() + 1, inputs.end()};
  std::vector<DTensor> states(spec_.states, zero);
  // Without the tape, because keep_states() assigns them before the backward pass.
  const NoRecording no_tape;
  for (size_t s = 0; keeps && s < states.size(); ++s) {
    states[s] = ops::stop_gradient(read(states_[s]));
  }
  return states;
}

void RecurrentLayer::keep_states(const std::vector<DTensor>& states) {
  if (!settings_.stateful || is_abstract()) return;
  for (size_t s = 0; s < states_.size(); ++s) states_[s].assign(states[s]);
}

/// State of the loop over time.
struct RecurrentLayer::LoopState {
  std::vector<DTensor> states;
  DTensor output;                ///< output of the latest step
  std::vector<DTensor> outputs;  ///< outputs of all steps, with return_sequences
};

void RecurrentLayer::run(const Inputs& inputs, const CallContext& context, LoopState& loop) const {
  const DTensor& x = inputs[0];
  const std::vector<DTensor> projected = ops::unstack(project(x, context), 1);
  const RecurrentProduct recurrent = recurrence(x, context);
  std::vector<DTensor> step_masks;
  if (const DTensor mask = x.mask(); mask.defined()) {
    if (const Shape steps = {x.size(0), x.size(1)}; mask.shape() != steps) {
      throw ShapeError(class_name() + " " + path(),
                       "a mask has axes batch and time, " + to_string(steps),
                       to_string(mask.shape()), "mask steps, not features");
    }
    step_masks = ops::unstack(ops::expand_dims(mask, -1), 1);
  }
  const DTensor zero_state = make_zero_state(x, units_, x.dtype());
  // The last output is that of the last step that counts, whatever zero_output_for_mask says.
  const bool zeros = settings_.zero_output_for_mask && settings_.return_sequences;
  loop.output = zero_state;
  for (size_t i = 0; i < projected.size(); ++i) {
    const size_t t = settings_.go_backwards ? projected.size() - 1 - i : i;
    std::vector<DTensor> next = step(projected[t], loop.states, recurrent);
    if (step_masks.empty()) {
      loop.output = next[0];
    } else {
      const DTensor& previous = zeros ? zero_state : loop.output;
      loop.output = ops::where(step_masks[t], next[0], previous);
      for (size_t s = 0; s < next.size(); ++s) {
        next[s] = ops::where(step_masks[t], next[s], loop.states[s]);
      }
    }
    loop.states = std::move(next);
    if (settings_.return_sequences) loop.outputs.push_back(loop.output);
  }
}

std::vector<DTensor> RecurrentLayer::call_all(const Inputs& inputs, const CallContext& context) {
  LoopState loop;
  loop.states = first_states(inputs);
  run(inputs, context, loop);
  keep_states(loop.states);
  std::vector<DTensor> results = {settings_.return_sequences ? ops::stack(loop.outputs, 1)
                                                             : loop.output};
  if (settings_.return_state) {
    results.insert(results.end(), loop.states.begin(), loop.states.end());
  }
  for (const DTensor& y : results) penalize(settings_.activity_regularizer, y);
  return results;
}

std::vector<DTensor> RecurrentLayer::masks(const Inputs& inputs, size_t outputs) {
  std::vector<DTensor> list(outputs);
  if (settings_.return_sequences) list[0] = inputs[0].mask();
  return list;
}

}  // namespace tessera::detail
