#include <tessera/layers/internal/gated_cell.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera::detail {

GatedCell::GatedCell(const LayerOptions& common, CellSpec spec, int64_t units,
                     GatedCellOptions settings)
    : RNNCell(common), spec_(std::move(spec)), units_(units), settings_(std::move(settings)) {
  const std::string where = spec_.layer + " " + settings_.name;
  check_units(where, units);
  check_rate(where + ", dropout", settings_.dropout);
  check_rate(where + ", recurrent_dropout", settings_.recurrent_dropout);
}

void GatedCell::check_inputs(const Shape& inputs) const {
  const std::string where = class_name() + " " + path();
  if (inputs.size() != 2 || inputs[1] < 0) {
    throw ShapeError(where, "a step has axes batch and features, the last one known",
                     to_string(inputs), "expand or reshape it first");
  }
  if (built() && inputs[1] != kernel_.shape()[0]) {
    throw ShapeError(where,
                     str("the last axis has ", kernel_.shape()[0], " features, as when built"),
                     to_string(inputs), "pass inputs of that size");
  }
}

void GatedCell::make_weights(const Shapes& inputs) {
  const GatedCellOptions& s = settings_;
  const int64_t width = spec_.gates() * units_;
  kernel_ = add_weight("kernel", {inputs[0][1], width}, s.kernel_initializer,
                       {.regularizer = s.kernel_regularizer, .constraint = s.kernel_constraint});
  recurrent_kernel_ =
      add_weight("recurrent_kernel", {units_, width}, s.recurrent_initializer,
                 {.regularizer = s.recurrent_regularizer, .constraint = s.recurrent_constraint});
  if (!s.use_bias) return;
  const Shape shape = spec_.recurrent_bias ? Shape{2, width} : Shape{width};
  bias_ = add_weight("bias", shape,
                     spec_.bias_initializer ? spec_.bias_initializer : s.bias_initializer,
                     {.regularizer = s.bias_regularizer, .constraint = s.bias_constraint});
}

/// Draws dropout factors, 0 or 1 / (1 - rate), for all steps at once; undefined without dropout.
DTensor GatedCell::dropped(const Shape& shape, double rate, const CallContext& context) const {
  if (!context.training || rate == 0) return {};
  const Layout layout = Layout::replicated(default_mesh(), static_cast<int64_t>(shape.size()));
  return ops::dropout(filled(shape, 1, dtype_policy().compute, layout), rate,
                      draw_seed(context, path(), default_mesh(), settings_.seed));
}

DTensor GatedCell::bias_row(size_t row) const {
  if (!bias_.defined() || (row > 0 && !spec_.recurrent_bias)) return {};
  return spec_.recurrent_bias ? ops::unstack(read(bias_))[row] : read(bias_);
}

std::function<DTensor(const DTensor&)> GatedCell::projection(const Shape& inputs,
                                                             const CallContext& context) const {
  // As in Keras, each gate has its own dropout mask of the inputs if recurrent_dropout is used.
  const bool by_gate = settings_.recurrent_dropout > 0 && spec_.gates() > 1;
  const DTensor factors =
      dropped({by_gate ? spec_.gates() : 1, inputs[0], inputs[1]}, settings_.dropout, context);
  const DTensor kernel = read(kernel_), bias = bias_row(0);
  if (factors.defined() && by_gate) {
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
  const DTensor factors =
      dropped({spec_.gates(), inputs[0], units_}, settings_.recurrent_dropout, context);
  const RecurrentProduct recurrent(spec_, read(recurrent_kernel_), bias_row(1), factors);
  return [=, this](const DTensor& x, const std::vector<DTensor>& states) {
    std::vector<DTensor> next = next_states(project(x), states, recurrent);
    next.insert(next.begin(), next[0]);
    return next;
  };
}

}  // namespace tessera::detail
