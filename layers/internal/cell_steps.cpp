#include <tessera/layers/internal/cell_steps.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera::detail {
namespace {

DTensor in_dtype(const DTensor& x, at::ScalarType dtype) {
  return at::isFloatingType(x.dtype()) ? ops::cast(x, dtype) : x;
}

}  // namespace

RNNCell& cell_of(const LayerHandle& layer, const std::string& where) {
  auto* const cell = dynamic_cast<RNNCell*>(layer.layer().get());
  if (!cell) {
    throw ConfigError(where, "a cell is an RNNCell", layer->class_name(),
                      "use LSTMCell, GRUCell, SimpleRNNCell or a class derived from RNNCell");
  }
  const std::vector<int64_t> sizes = cell->state_sizes();
  const bool positive = std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n > 0; });
  if (positive && !sizes.empty() && cell->output_size() > 0) return *cell;
  throw ConfigError(where, "a cell has states and an output of at least one unit",
                    str(cell->class_name(), " with state sizes ", to_string(Shape(sizes)),
                        " and output size ", sizes.empty() ? 0 : cell->output_size()),
                    "return their extents from state_sizes() and output_size()");
}

Shapes cell_inputs(const RNNCell& cell, const Shape& inputs) {
  Shapes shapes = {inputs};
  for (const int64_t size : cell.state_sizes()) {
    shapes.push_back({inputs.empty() ? -1 : inputs[0], size});
  }
  return shapes;
}

std::vector<size_t> cell_states(const RNNCell& cell) {
  std::vector<size_t> counts;
  if (cell.class_name() != "StackedRNNCells") return counts;
  for (const auto& inner : cell.sublayers()) {
    counts.push_back(static_cast<const RNNCell&>(*inner).state_sizes().size());
  }
  return counts;
}

RNNCell::StepFunction cell_steps(RNNCell& cell, const Shape& inputs, const CallContext& context) {
  return [step = cell.begin(inputs, context), dtype = cell.dtype_policy().compute](
             const DTensor& x, const std::vector<DTensor>& states) {
    std::vector<DTensor> cast;
    for (const DTensor& state : states) cast.push_back(in_dtype(state, dtype));
    return step(in_dtype(x, dtype), cast);
  };
}

}  // namespace tessera::detail
