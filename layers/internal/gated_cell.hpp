#pragma once

#include <functional>
#include <vector>

#include <tessera/layers/internal/gated.hpp>
#include <tessera/layers/recurrent/rnn.hpp>

namespace tessera::detail {

/// Base of SimpleRNNCell, GRUCell and LSTMCell. Dropout masks are drawn once for each sequence.
/// Communication: none if the batch is sharded.
class GatedCell : public Gated<RNNCell> {
 public:
  std::vector<int64_t> state_sizes() const final {
    return std::vector<int64_t>(spec_.states, units_);
  }
  StepFunction begin(const Shape& inputs, const CallContext& context) final;

 protected:
  /// Throws ConfigError for units < 1 and rates outside [0, 1).
  GatedCell(const LayerOptions& common, const CellSpec& spec, int64_t units,
            const RecurrentOptions& settings)
      : Gated(spec, units, settings, common) {}
  /// Returns the next states from the projected input (batch, gates · units) and the current
  /// states. The first one is the output.
  virtual std::vector<DTensor> next_states(const DTensor& x, const std::vector<DTensor>& states,
                                           const RecurrentProduct& recurrent) const = 0;
  void make_weights(const Shapes& inputs) final { make_gated_weights("", inputs[0][1]); }
  void check_inputs(const Shape& inputs) const final;
  std::vector<DTensor> step(const DTensor& inputs, const std::vector<DTensor>& states,
                            const CallContext& context) final {
    return begin(inputs.shape(), context)(inputs, states);
  }

 private:
  /// Returns the function that projects a step's inputs, (batch, features) -> (batch,
  /// gates · units).
  std::function<DTensor(const DTensor&)> projection(const Shape& inputs,
                                                    const CallContext& context) const;
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

}  // namespace tessera::detail
