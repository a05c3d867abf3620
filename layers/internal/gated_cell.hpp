#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/internal/recurrent_layer.hpp>
#include <tessera/layers/recurrent/rnn.hpp>

namespace tessera::detail {

/// The options that SimpleRNNCell, GRUCell and LSTMCell share.
struct GatedCellOptions {
  bool use_bias = true;
  InitializerHandle kernel_initializer, recurrent_initializer, bias_initializer;
  RegularizerHandle kernel_regularizer, recurrent_regularizer, bias_regularizer;
  ConstraintHandle kernel_constraint, recurrent_constraint, bias_constraint;
  double dropout = 0, recurrent_dropout = 0;
  std::optional<int64_t> seed;
  std::string name, dtype;
  bool trainable = true;
};

/// Base of SimpleRNNCell, GRUCell and LSTMCell: a cell of gates with the weights kernel (features,
/// gates · units), recurrent_kernel (units, gates · units) and bias. Dropout masks are drawn once
/// for each sequence. Communication: none if the batch is sharded.
class GatedCell : public RNNCell {
 public:
  std::vector<int64_t> state_sizes() const final {
    return std::vector<int64_t>(spec_.states, units_);
  }
  StepFunction begin(const Shape& inputs, const CallContext& context) final;

 protected:
  /// Throws ConfigError for units < 1 and rates outside [0, 1).
  GatedCell(const LayerOptions& common, CellSpec spec, int64_t units, GatedCellOptions settings);
  /// Tracks activations that are layers as sublayers.
  template <class Options>
  void track_activations(const Options& o) {
    if (o.activation.layer()) track("activation", o.activation.layer());
    if constexpr (requires { o.recurrent_activation; }) {
      const auto& gates = o.recurrent_activation.layer();
      if (gates) track("recurrent_activation", gates);
    }
  }
  /// Returns the next states from the projected input (batch, gates · units) and the current
  /// states. The first one is the output.
  virtual std::vector<DTensor> next_states(const DTensor& x, const std::vector<DTensor>& states,
                                           const RecurrentProduct& recurrent) const = 0;
  void make_weights(const Shapes& inputs) final;
  void check_inputs(const Shape& inputs) const final;
  std::vector<DTensor> step(const DTensor& inputs, const std::vector<DTensor>& states,
                            const CallContext& context) final {
    return begin(inputs.shape(), context)(inputs, states);
  }

 private:
  DTensor dropped(const Shape& shape, double rate, const CallContext& context) const;
  /// Returns the function that projects a step's inputs, (batch, features) -> (batch,
  /// gates · units).
  std::function<DTensor(const DTensor&)> projection(const Shape& inputs,
                                                    const CallContext& context) const;
  /// Returns a row of the bias, or undefined.
  DTensor bias_row(size_t row) const;

  CellSpec spec_;
  int64_t units_;
  GatedCellOptions settings_;
  Variable kernel_, recurrent_kernel_, bias_;
};

/// Visits the options of a cell in Keras' order; those that its struct lacks are skipped.
template <class Options, class Visit>
void cell_fields(Options& o, const Visit& visit) {
  if constexpr (requires { o.activation; }) visit("activation", o.activation);
  if constexpr (requires { o.recurrent_activation; }) {
    visit("recurrent_activation", o.recurrent_activation);
  }
  visit("use_bias", o.use_bias);
  if constexpr (requires { o.unit_forget_bias; }) visit("unit_forget_bias", o.unit_forget_bias);
  visit("kernel_initializer", o.kernel_initializer);
  visit("recurrent_initializer", o.recurrent_initializer);
  visit("bias_initializer", o.bias_initializer);
  visit("kernel_regularizer", o.kernel_regularizer);
  visit("recurrent_regularizer", o.recurrent_regularizer);
  visit("bias_regularizer", o.bias_regularizer);
  visit("kernel_constraint", o.kernel_constraint);
  visit("recurrent_constraint", o.recurrent_constraint);
  visit("bias_constraint", o.bias_constraint);
  visit("dropout", o.dropout);
  visit("recurrent_dropout", o.recurrent_dropout);
  if constexpr (requires { o.reset_after; }) visit("reset_after", o.reset_after);
  visit("seed", o.seed);
}

template <class Visit>
void fields(GatedCellOptions& s, const Visit& visit) {
  cell_fields(s, visit);
}

}  // namespace tessera::detail
