#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/layers/internal/cell_steps.hpp>
#include <tessera/layers/recurrent/rnn.hpp>

namespace tessera {

using namespace detail;

namespace {

void check_step(const RNNCell& cell, const std::vector<DTensor>& results) {
  const size_t count = 1 + cell.state_sizes().size();
  if (results.size() == count) return;
  throw ShapeError(cell.class_name() + " " + cell.path(),
                   str("step() returns the output and ", count - 1, " states"),
                   str(results.size(), " tensors"), "return one state for each of state_sizes()");
}

}  // namespace

RNNCell::StepFunction RNNCell::begin(const Shape&, const CallContext& context) {
  return [this, context](const DTensor& inputs, const std::vector<DTensor>& states) {
    std::vector<DTensor> results = step(inputs, states, context);
    check_step(*this, results);
    return results;
  };
}

Shapes RNNCell::output_shapes(const Shapes& inputs) const {
  const std::string where = class_name() + " " + path();
  const std::vector<int64_t> sizes = state_sizes();
  if (inputs.size() != 1 + sizes.size()) {
    throw ShapeError(where, str("inputs are those of a step, then ", sizes.size(), " states"),
                     str(inputs.size(), " inputs"),
                     "pass every state, or call an RNN of this cell");
  }
  check_inputs(inputs[0]);
  const int64_t batch = inputs[0].empty() ? -1 : inputs[0][0];
  Shapes shapes = {{batch, output_size()}};
  for (size_t s = 0; s < sizes.size(); ++s) {
    const Shape& actual = inputs[s + 1];
    shapes.push_back({batch, sizes[s]});
    const bool fits = actual.size() == 2 && actual[1] == sizes[s] &&
                      (actual[0] == batch || actual[0] == -1 || batch == -1);
    if (fits) continue;
    throw ShapeError(where, "a state has shape " + to_string(shapes.back()), to_string(actual),
                     "pass one number for each unit of each row");
  }
  return shapes;
}

std::vector<DTensor> RNNCell::call_all(const Inputs& inputs, const CallContext& context) {
  return begin(inputs[0].shape(), context)(inputs[0], {inputs.begin() + 1, inputs.end()});
}

}  // namespace tessera
