#include <tessera/layers/internal/conv_lstm_cell.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/forget_bias.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera::detail {
namespace {

constexpr int64_t gate_count = 4;

/// Draws factors for each gate; empty without dropout.
std::vector<DTensor> factors_of(const Layer& layer, const Shape& shape, double rate,
                                const std::optional<int64_t>& seed, const CallContext& context) {
  if (!context.training || rate == 0) return {};
  Shape by_gate = shape;
  by_gate.insert(by_gate.begin(), gate_count);
  const Mesh& mesh = default_mesh();
  const Layout layout = Layout::replicated(mesh, static_cast<int64_t>(by_gate.size()));
  const DTensor ones = filled(by_gate, 1, layer.dtype_policy().compute, layout);
  return ops::unstack(ops::dropout(ones, rate, draw_seed(context, layer.path(), mesh, seed)));
}

}  // namespace

ConvLSTMCell::ConvLSTMCell(const std::string& layer, int64_t spatial,
                           const ConvLSTMArguments& arguments)
    : SpatialLayer({"conv_lstm_cell", arguments.dtype, arguments.trainable}, layer, spatial,
                   arguments.data_format),
      arguments_(arguments) {
  const std::string where = layer + " " + arguments.name;
  check_positive(arguments.filters, "filters");
  arguments_.data_format = data_format();
  arguments_.kernel_size = each(arguments.kernel_size, "kernel_size");
  arguments_.strides = each(arguments.strides, "strides");
  arguments_.dilation_rate = each(arguments.dilation_rate, "dilation_rate");
  check_padding(arguments.padding, {"valid", "same"});
  const auto above_one = [](const AxisValues& axes) {
    return *std::max_element(axes.values.begin(), axes.values.end()) > 1;
  };
  if (above_one(arguments_.strides) && above_one(arguments_.dilation_rate)) {
    throw ConfigError(where, "strides or dilation_rate is 1 along all axes",
                      str("strides ", to_string(Shape(arguments_.strides.values)),
                          " and dilation_rate ", to_string(Shape(arguments_.dilation_rate.values))),
                      "leave one of them out");
  }
  check_rate(where + ", dropout", arguments.dropout);
  check_rate(where + ", recurrent_dropout", arguments.recurrent_dropout);
  if (const auto& inner = arguments.activation.layer()) track("activation", inner);
  if (const auto& inner = arguments.recurrent_activation.layer()) {
    track("recurrent_activation", inner);
  }
}

std::vector<WindowAxis> ConvLSTMCell::input_windows(const Shape& x) const {
  return windows(x, arguments_.kernel_size.values, arguments_.strides.values,
                 arguments_.dilation_rate.values, arguments_.padding);
}

std::vector<WindowAxis> ConvLSTMCell::state_windows(const Shape& x) const {
  const std::vector<int64_t> ones(size_t(spatial()), 1);
  return windows(x, arguments_.kernel_size.values, ones, ones, "same");
}

Shape ConvLSTMCell::image_shape(const Shape& x) const {
  channels_of(x);
  return shape_of(x[0], outputs(x, input_windows(x)), arguments_.filters);
}

void ConvLSTMCell::make_weights(const Shapes& inputs) {
  const ConvLSTMArguments& a = arguments_;
  Shape shape(a.kernel_size.values.begin(), a.kernel_size.values.end());
  shape.push_back(channels_last_shape(inputs).back());
  shape.push_back(gate_count * a.filters);
  kernel_ = add_weight("kernel", shape, a.kernel_initializer,
                       {.regularizer = a.kernel_regularizer, .constraint = a.kernel_constraint});
  shape[shape.size() - 2] = a.filters;
  recurrent_kernel_ =
      add_weight("recurrent_kernel", shape, a.recurrent_initializer,
                 {.regularizer = a.recurrent_regularizer, .constraint = a.recurrent_constraint});
  if (!a.use_bias) return;
  bias_ = add_weight("bias", {gate_count * a.filters},
                     a.unit_forget_bias ? forget_bias(a.bias_initializer) : a.bias_initializer,
                     {.regularizer = a.bias_regularizer, .constraint = a.bias_constraint});
}

DTensor ConvLSTMCell::convolved(const DTensor& x, const DTensor& kernel,
                                const std::vector<DTensor>& factors,
                                const std::vector<WindowAxis>& axes) const {
  if (factors.empty()) return ops::conv(to_channels_last(x), kernel, axes);
  const std::vector<DTensor> kernels = ops::split(kernel, gate_count, -1);
  std::vector<DTensor> gates;
  for (size_t g = 0; g < factors.size(); ++g) {
    gates.push_back(ops::conv(to_channels_last(x * factors[g]), kernels[g], axes));
  }
  return ops::concat(gates, -1);
}

DTensor ConvLSTMCell::transform(const DTensor& x, const CallContext&) {
  const DTensor y = ops::conv(x, read(kernel_), input_windows(x.shape()));
  return bias_.defined() ? y + read(bias_) : y;
}

ConvLSTMCell::Dropped ConvLSTMCell::draw(const Shape& step, const CallContext& context) const {
  const ConvLSTMArguments& a = arguments_;
  Dropped dropped;
  dropped.inputs = factors_of(*this, step, a.dropout, a.seed, context);
  dropped.states = factors_of(*this, state_shape(step), a.recurrent_dropout, a.seed, context);
  return dropped;
}

std::vector<DTensor> ConvLSTMCell::next_states(const DTensor& x, const std::vector<DTensor>& states,
                                               const Dropped& dropped) {
  const Shape image = channels_last_shape({x.shape()});
  DTensor sums = convolved(x, read(kernel_), dropped.inputs, input_windows(image));
  if (bias_.defined()) sums = sums + read(bias_);
  sums = sums + convolved(states[0], read(recurrent_kernel_), dropped.states,
                          state_windows(image_shape(image)));
  Shape by_gate = sums.shape();
  by_gate.back() = gate_count;
  by_gate.push_back(arguments_.filters);
  std::vector<DTensor> gates = ops::unstack(ops::reshape(sums, by_gate), spatial() + 1);
  for (DTensor& each_gate : gates) each_gate = to_data_format(each_gate);
  const ActivationHandle& gate = arguments_.recurrent_activation;
  const ActivationHandle& activation = arguments_.activation;
  const DTensor carry = gate(gates[1]) * states[1] + gate(gates[0]) * activation(gates[2]);
  return {gate(gates[3]) * activation(carry), carry};
}

}  // namespace tessera::detail
