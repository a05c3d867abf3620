#include <tessera/layers/recurrent/conv_lstm.hpp>

#include <memory>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/conv_lstm_cell.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/sequence_layer.hpp>
#include <tessera/layers/internal/time_axis.hpp>

namespace tessera {

using namespace detail;

namespace detail {

template <class Visit>
void fields(ConvLSTMArguments& a, const Visit& visit) {
  ExtentOption filters{a.filters};
  visit("return_sequences", a.return_sequences);
  visit("return_state", a.return_state);
  visit("go_backwards", a.go_backwards);
  visit("stateful", a.stateful);
  visit("unroll", a.unroll);
  visit("zero_output_for_mask", a.zero_output_for_mask);
  visit("filters", filters);
  visit("kernel_size", a.kernel_size);
  visit("strides", a.strides);
  visit("padding", a.padding);
  visit("data_format", a.data_format);
  visit("dilation_rate", a.dilation_rate);
  visit("activation", a.activation);
  visit("recurrent_activation", a.recurrent_activation);
  visit("use_bias", a.use_bias);
  visit("kernel_initializer", a.kernel_initializer);
  visit("recurrent_initializer", a.recurrent_initializer);
  visit("bias_initializer", a.bias_initializer);
  visit("unit_forget_bias", a.unit_forget_bias);
  visit("kernel_regularizer", a.kernel_regularizer);
  visit("recurrent_regularizer", a.recurrent_regularizer);
  visit("bias_regularizer", a.bias_regularizer);
  visit("activity_regularizer", a.activity_regularizer);
  visit("kernel_constraint", a.kernel_constraint);
  visit("recurrent_constraint", a.recurrent_constraint);
  visit("bias_constraint", a.bias_constraint);
  visit("dropout", a.dropout);
  visit("recurrent_dropout", a.recurrent_dropout);
  visit("seed", a.seed);
}

}  // namespace detail

namespace {

class ConvLSTMLayer final : public SequenceLayer {
 public:
  ConvLSTMLayer(int64_t spatial, const ConvLSTMArguments& arguments)
      : SequenceLayer(common_options(arguments), sequence_options(arguments)),
        class_name_(str("ConvLSTM", spatial, "D")),
        spatial_(spatial),
        cell_(std::make_shared<ConvLSTMCell>(class_name_, spatial, arguments)) {
    track("cell", LayerHandle(cell_));
  }
  std::string class_name() const override { return class_name_; }
  Json config() const override { return layer_config(*this, cell_->arguments()); }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override { cell_->build({step_of(inputs[0])}); }
  void check_sequence(const Shape& x) const override;
  Shapes state_shapes(const Shape& x) const override;
  Steps steps(const DTensor& x, const CallContext& context) override;

 private:
  std::string class_name_;
  int64_t spatial_;
  std::shared_ptr<ConvLSTMCell> cell_;
};

template <int64_t spatial>
LayerHandle conv_lstm_from(JsonObject& config) {
  auto arguments = layer_options_from<ConvLSTMArguments>(config);
  return make_layer<ConvLSTMLayer>(spatial, arguments);
}

const RegisteredLayer registered_conv_lstm1d("ConvLSTM1D", conv_lstm_from<1>);
const RegisteredLayer registered_conv_lstm2d("ConvLSTM2D", conv_lstm_from<2>);
const RegisteredLayer registered_conv_lstm3d("ConvLSTM3D", conv_lstm_from<3>);

void ConvLSTMLayer::check_sequence(const Shape& x) const {
  if (static_cast<int64_t>(x.size()) != spatial_ + 3 || x[1] == 0) {
    throw ShapeError(class_name_ + " " + path(),
                     str("a sequence has axes batch, time, channels and ", spatial_, " more"),
                     to_string(x), "expand or reshape it first");
  }
  // Throws for steps that the cell does not take.
  cell_->state_shape(step_of(x));
}

Shapes ConvLSTMLayer::state_shapes(const Shape& x) const {
  if (!x.empty()) return Shapes(2, cell_->state_shape(step_of(x)));
  Shape unknown(size_t(spatial_) + 2, -1);
  const bool first = cell_->arguments().data_format == "channels_first";
  unknown[first ? 1 : size_t(spatial_) + 1] = cell_->arguments().filters;
  return {unknown, unknown};
}

SequenceLayer::Steps ConvLSTMLayer::steps(const DTensor& x, const CallContext& context) {
  Steps all{ops::unstack(x, 1), {}};
  const ConvLSTMCell::Dropped dropped = cell_->draw(all.inputs[0].shape(), context);
  all.step = [cell = cell_, dropped](const DTensor& inputs, const std::vector<DTensor>& states) {
    std::vector<DTensor> next = cell->next_states(inputs, states, dropped);
    next.insert(next.begin(), next[0]);
    return next;
  };
  return all;
}

LayerHandle conv_lstm_of(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
                         const ConvLSTMOptions& options) {
  return make_layer<ConvLSTMLayer>(spatial, ConvLSTMArguments{options, filters, kernel_size});
}

}  // namespace

ConvLSTM1D::ConvLSTM1D(int64_t filters, const AxisValues& kernel_size,
                       const ConvLSTMOptions& options)
    : RecurrentHandle(conv_lstm_of(1, filters, kernel_size, options).layer()) {}
ConvLSTM2D::ConvLSTM2D(int64_t filters, const AxisValues& kernel_size,
                       const ConvLSTMOptions& options)
    : RecurrentHandle(conv_lstm_of(2, filters, kernel_size, options).layer()) {}
ConvLSTM3D::ConvLSTM3D(int64_t filters, const AxisValues& kernel_size,
                       const ConvLSTMOptions& options)
    : RecurrentHandle(conv_lstm_of(3, filters, kernel_size, options).layer()) {}

}  // namespace tessera
