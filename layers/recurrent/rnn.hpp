#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/layers/recurrent/recurrent_handle.hpp>

namespace tessera {

/// A recurrent cell of your own: computes one step of a sequence, which RNN repeats. It is a layer
/// with weights: make_weights() gets the shapes of a step's inputs, (batch, features), and of the
/// states.
///
///     class Averaging final : public RNNCell {
///      public:
///       explicit Averaging(int64_t units) : units_(units) {}
///       std::string class_name() const override { return "Averaging"; }
///       std::vector<int64_t> state_sizes() const override { return {units_}; }
///       bool can_be_replayed() const override { return true; }
///
///      protected:
///       void make_weights(const Shapes& inputs) override {
///         kernel_ = add_weight("kernel", {inputs[0].back(), units_}, "glorot_uniform");
///       }
///       std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
///                                 const CallContext&) override {
///         const DTensor h = (states[0] + ops::matmul(x, read(kernel_))) / 2;
///         return {h, h};
///       }
///
///      private:
///       int64_t units_;
///       Variable kernel_;
///     };
///     RNN layer(make_layer<Averaging>(32));
///
/// A cell that is part of a saved model, or of Bidirectional, overrides config() and is registered
/// with register_layer().
class RNNCell : public Layer {
 public:
  /// Returns a step's output, then the next states, from its inputs and the current states.
  using StepFunction = std::function<std::vector<DTensor>(const DTensor& inputs,
                                                          const std::vector<DTensor>& states)>;

  explicit RNNCell(const LayerOptions& options = {}) : Layer(options) {}
  /// Returns the extent of each state, (batch, extent) (keras' state_size).
  virtual std::vector<int64_t> state_sizes() const = 0;
  /// Returns the extent of the output, (batch, extent) (default: the first state's).
  virtual int64_t output_size() const { return state_sizes()[0]; }
  /// Prepares the steps of a sequence whose steps have shape `inputs`, by default step(). Override
  /// it to compute what all steps share, such as dropout masks, only once. default_mesh() is that
  /// of the sequence.
  virtual StepFunction begin(const Shape& inputs, const CallContext& context);
  Shape output_shape(const Shapes& inputs) const final { return output_shapes(inputs)[0]; }
  /// Returns the shapes of the output and of the next states. Throws ShapeError unless the inputs
  /// are those of a step and all states.
  Shapes output_shapes(const Shapes& inputs) const final;

 protected:
  /// Returns the output, then the next states.
  virtual std::vector<DTensor> step(const DTensor& inputs, const std::vector<DTensor>& states,
                                    const CallContext& context) = 0;
  /// Throws ShapeError unless the cell takes inputs of this shape (default: takes all).
  virtual void check_inputs(const Shape&) const {}
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) final;
};

/// Options of RNN.
struct RNNOptions {
  bool return_sequences = false;  ///< whether to return all steps' outputs (default: the last)
  bool return_state = false;      ///< whether to return the final states as further outputs
  bool go_backwards = false;      ///< whether to read the steps in reverse
  bool stateful = false;          ///< whether a batch starts from the previous one's final states
  bool unroll = false;            ///< no effect: steps are always unrolled
  bool zero_output_for_mask = false;  ///< whether masked steps of sequences output zeros
  std::string name = "";              ///< first component of the weights' paths
  std::string dtype = "";             ///< dtype policy (default: the global policy)
  bool trainable = true;              ///< whether training changes the weights
};

/// Repeats a cell over the steps of a sequence (keras.layers.RNN). SimpleRNN, GRU and LSTM are
/// faster than their cells here: they project all steps at once.
///
/// Shape: (batch, time, …) -> (batch, output size), or with return_sequences (batch, time,
/// output size), in the order in which the steps are read. Initial states may be passed as further
/// inputs; with return_state the final ones are further outputs, those of stacked cells in a row. A
/// masked step keeps the states and repeats the previous output.
/// Weights: the cell's, at "path/lstm_cell/…" for an LSTMCell.
/// Communication: the cell's at each step; sharded steps are gathered.
///
///     RNN({LSTMCell(64), GRUCell(32)}, {.return_sequences = true})
class RNN : public RecurrentHandle {
 public:
  /// Throws ConfigError for a layer that is no RNNCell.
  explicit RNN(const LayerHandle& cell, const RNNOptions& options = {});
  /// Stacks the cells, as StackedRNNCells.
  explicit RNN(const std::vector<LayerHandle>& cells, const RNNOptions& options = {});
};

/// Cells on top of each other: each takes the output of the one before it
/// (keras.layers.StackedRNNCells).
///
/// Shape: a step's inputs and the states of all cells -> the last cell's output and all next
/// states, in the order of the cells.
/// Weights: the cells', at "path/lstm_cell/…", "path/lstm_cell_1/…" for two LSTMCells.
/// Communication: that of the cells.
///
///     StackedRNNCells({LSTMCell(64), LSTMCell(32)})
class StackedRNNCells : public LayerHandle {
 public:
  /// Throws ConfigError for an empty list or a layer that is no RNNCell.
  explicit StackedRNNCells(const std::vector<LayerHandle>& cells, const LayerOptions& options = {});
};

}  // namespace tessera
