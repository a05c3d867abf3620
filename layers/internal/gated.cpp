#include <tessera/layers/internal/gated.hpp>

#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/noise.hpp>
#include <tessera/layers/internal/sequence_layer.hpp>
#include <tessera/layers/recurrent/rnn.hpp>

namespace tessera::detail {
namespace {

void check_units(const std::string& where, int64_t units) {
  // 4 gates · units · units still fits int64.
  constexpr int64_t max_size = int64_t{1} << 29;
  if (units >= 1 && units <= max_size) return;
  throw ConfigError(where, str("units is from 1 to ", max_size), str(units),
                    "give the number of outputs");
}

}  // namespace

DTensor gates_first(const DTensor& kernel, int64_t gates) {
  const int64_t units = kernel.size(1) / gates;
  return ops::transpose(ops::reshape(kernel, {kernel.size(0), gates, units}), {1, 0, 2});
}

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

void check_gated(const CellSpec& spec, int64_t units, const RecurrentOptions& settings) {
  const std::string where = spec.layer + " " + settings.name;
  check_units(where, units);
  check_rate(where + ", dropout", settings.dropout);
  check_rate(where + ", recurrent_dropout", settings.recurrent_dropout);
}

template <class Base>
void Gated<Base>::make_gated_weights(const std::string& prefix, int64_t features) {
  const RecurrentOptions& s = settings_;
  const int64_t width = spec_.gates() * units_;
  kernel_ =
      this->add_weight(prefix + "kernel", {features, width}, s.kernel_initializer,
                       {.regularizer = s.kernel_regularizer, .constraint = s.kernel_constraint});
  recurrent_kernel_ = this->add_weight(
      prefix + "recurrent_kernel", {units_, width}, s.recurrent_initializer,
      {.regularizer = s.recurrent_regularizer, .constraint = s.recurrent_constraint});
  if (!s.use_bias) return;
  const Shape shape = spec_.recurrent_bias ? Shape{2, width} : Shape{width};
  bias_ = this->add_weight(prefix + "bias", shape,
                           spec_.bias_initializer ? spec_.bias_initializer : s.bias_initializer,
                           {.regularizer = s.bias_regularizer, .constraint = s.bias_constraint});
}

template <class Base>
void Gated<Base>::check_features(const Shape& x) const {
  if (!this->built() || x.back() == kernel_.shape()[0]) return;
  throw ShapeError(this->class_name() + " " + this->path(),
                   str("the last axis has ", kernel_.shape()[0], " features, as when built"),
                   to_string(x), "pass inputs of that size");
}

template <class Base>
DTensor Gated<Base>::dropped(const Shape& shape, double rate, const CallContext& context,
                             const Mesh& mesh) const {
  if (!context.training || rate == 0) return {};
  const Layout layout = Layout::replicated(mesh, static_cast<int64_t>(shape.size()));
  return ops::dropout(filled(shape, 1, this->dtype_policy().compute, layout), rate,
                      draw_seed(context, this->path(), mesh, settings_.seed));
}

template <class Base>
DTensor Gated<Base>::input_bias() const {
  if (!bias_.defined()) return {};
  return spec_.recurrent_bias ? ops::unstack(this->read(bias_))[0] : this->read(bias_);
}

template <class Base>
DTensor Gated<Base>::recurrent_bias() const {
  const bool biased = bias_.defined() && spec_.recurrent_bias;
  return biased ? ops::unstack(this->read(bias_))[1] : DTensor();
}

template <class Base>
RecurrentProduct Gated<Base>::recurrence(int64_t rows, const CallContext& context,
                                         const Mesh& mesh) const {
  const DTensor factors =
      dropped({spec_.gates(), rows, units_}, settings_.recurrent_dropout, context, mesh);
  return RecurrentProduct(spec_, this->read(recurrent_kernel_), recurrent_bias(), factors);
}

template class Gated<SequenceLayer>;
template class Gated<RNNCell>;

}  // namespace tessera::detail
