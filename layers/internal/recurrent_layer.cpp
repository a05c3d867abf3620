#include <tessera/layers/internal/recurrent_layer.hpp>

#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera::detail {
namespace {

/// Reorders (rows, gates · units) to (gates, rows, units).
DTensor gates_first(const DTensor& kernel, int64_t gates) {
  const int64_t units = kernel.size(1) / gates;
  return ops::transpose(ops::reshape(kernel, {kernel.size(0), gates, units}), {1, 0, 2});
}

}  // namespace

int64_t CellSpec::gates() const { return std::accumulate(products.begin(), products.end(), 0L); }

RecurrentProduct::RecurrentProduct(const CellSpec& spec, const DTensor& kernel, const DTensor& bias,
                                   const DTensor& dropped) {
  const int64_t units = kernel.size(1) / spec.gates();
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

void check_units(const std::string& where, int64_t units) {
  // 4 gates · units · units still fits int64.
  constexpr int64_t max_size = int64_t{1} << 29;
  if (units >= 1 && units <= max_size) return;
  throw ConfigError(where, str("units is from 1 to ", max_size), str(units),
                    "give the number of outputs");
}

RecurrentLayer::RecurrentLayer(const LayerOptions& common, CellSpec spec, int64_t units,
                               RecurrentOptions settings)
    : SequenceLayer(common, sequence_options(settings)),
      spec_(std::move(spec)),
      units_(units),
      settings_(std::move(settings)) {
  const std::string where = spec_.layer + " " + settings_.name;
  check_units(where, units);
  check_rate(where + ", dropout", settings_.dropout);
  check_rate(where + ", recurrent_dropout", settings_.recurrent_dropout);
}

void RecurrentLayer::check_sequence(const Shape& x) const {
  const std::string where = class_name() + " " + path();
  if (x.size() != 3 || x[2] < 0 || x[1] == 0) {
    throw ShapeError(where, "a sequence has axes batch, time and features, the last one known",
                     to_string(x), "expand or reshape it first");
  }
  if (built() && x[2] != kernel_.shape()[0]) {
    throw ShapeError(where,
                     str("the last axis has ", kernel_.shape()[0], " features, as when built"),
                     to_string(x), "pass inputs of that size");
  }
}

Shapes RecurrentLayer::state_shapes(const Shape& x) const {
  return Shapes(spec_.states, {x.empty() ? -1 : x[0], units_});
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

SequenceLayer::Steps RecurrentLayer::steps(const DTensor& x, const CallContext& context) {
  Steps steps;
  steps.inputs = ops::unstack(project(x, context), 1);
  steps.step = [this, recurrent = recurrence(x, context)](const DTensor& projected,
                                                          const std::vector<DTensor>& states) {
    std::vector<DTensor> next = step(projected, states, recurrent);
    next.insert(next.begin(), next[0]);
    return next;
  };
  return steps;
}

}  // namespace tessera::detail
