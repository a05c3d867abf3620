#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/layers/recurrent/recurrent_handle.hpp>

namespace tessera {

/// Options of SimpleRNN.
struct SimpleRNNOptions {
  ActivationHandle activation = "tanh";                     ///< activation of the output
  bool use_bias = true;                                     ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< initializer of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle recurrent_regularizer = {};             ///< penalty on `recurrent_kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};              ///< penalty on the outputs, per row
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle recurrent_constraint = {};               ///< constraint on `recurrent_kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  double dropout = 0;            ///< dropout rate of the inputs; the same mask at all steps
  double recurrent_dropout = 0;  ///< dropout rate of the states in recurrent products
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
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

/// A fully connected recurrent layer,
/// h' = activation(x · kernel + bias + h · recurrent_kernel) (keras.layers.SimpleRNN).
///
/// Shape: (batch, time, features) -> (batch, units), or with return_sequences (batch, time, units),
/// in the order in which the steps are read. An initial state, (batch, units), may be passed as a
/// second input; with return_state the final state is a second output. A masked step keeps the
/// state and repeats the previous output.
/// Weights: simple_rnn_cell/kernel (features, units), simple_rnn_cell/recurrent_kernel
/// (units, units), simple_rnn_cell/bias (units).
/// Communication: none if the batch is sharded; sharded steps are gathered.
///
///     SimpleRNN(32, {.return_sequences = true})
class SimpleRNN : public RecurrentHandle {
 public:
  /// `units`: extent of a state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit SimpleRNN(int64_t units, const SimpleRNNOptions& options = {});
};

/// Options of GRU.
struct GRUOptions {
  ActivationHandle activation = "tanh";                     ///< activation of the candidate
  ActivationHandle recurrent_activation = "sigmoid";        ///< activation of the gates
  bool use_bias = true;                                     ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< initializer of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle recurrent_regularizer = {};             ///< penalty on `recurrent_kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};              ///< penalty on the outputs, per row
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle recurrent_constraint = {};               ///< constraint on `recurrent_kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  double dropout = 0;            ///< dropout rate of the inputs; the same mask at all steps
  double recurrent_dropout = 0;  ///< dropout rate of the states in recurrent products
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  bool return_sequences = false;  ///< whether to return all steps' outputs (default: the last)
  bool return_state = false;      ///< whether to return the final states as further outputs
  bool go_backwards = false;      ///< whether to read the steps in reverse
  bool stateful = false;          ///< whether a batch starts from the previous one's final states
  bool unroll = false;            ///< no effect: steps are always unrolled
  bool reset_after = true;        ///< whether to reset after the product with recurrent_kernel
  bool zero_output_for_mask = false;  ///< whether masked steps of sequences output zeros
  std::string name = "";              ///< first component of the weights' paths
  std::string dtype = "";             ///< dtype policy (default: the global policy)
  bool trainable = true;              ///< whether training changes the weights
};

/// Gated recurrent unit (keras.layers.GRU), h' = z · h + (1 - z) · u: the gates z and r are
/// recurrent_activation of the first two thirds of x · kernel + bias + h · recurrent_kernel, and u
/// is activation of the last third, where r multiplies h's product (reset_after) or h itself.
///
/// Shape: (batch, time, features) -> (batch, units), or with return_sequences (batch, time, units),
/// in the order in which the steps are read. An initial state, (batch, units), may be passed as a
/// second input; with return_state the final state is a second output. A masked step keeps the
/// state and repeats the previous output.
/// Weights: gru_cell/kernel (features, 3 · units), gru_cell/recurrent_kernel (units, 3 · units),
/// gru_cell/bias (3 · units), or with reset_after (2, 3 · units), whose second row belongs to the
/// products with h.
/// Communication: none if the batch is sharded; sharded steps are gathered.
///
///     GRU(64, {.dropout = 0.2, .return_sequences = true})
class GRU : public RecurrentHandle {
 public:
  /// `units`: extent of a state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit GRU(int64_t units, const GRUOptions& options = {});
};

/// Options of LSTM.
struct LSTMOptions {
  ActivationHandle activation = "tanh";                     ///< activation of candidate and carry
  ActivationHandle recurrent_activation = "sigmoid";        ///< activation of the gates
  bool use_bias = true;                                     ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< initializer of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  bool unit_forget_bias = true;                  ///< whether the forget gate's bias starts at 1
  RegularizerHandle kernel_regularizer = {};     ///< penalty on `kernel`
  RegularizerHandle recurrent_regularizer = {};  ///< penalty on `recurrent_kernel`
  RegularizerHandle bias_regularizer = {};       ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};   ///< penalty on the outputs, per row
  ConstraintHandle kernel_constraint = {};       ///< constraint on `kernel`
  ConstraintHandle recurrent_constraint = {};    ///< constraint on `recurrent_kernel`
  ConstraintHandle bias_constraint = {};         ///< constraint on `bias`
  double dropout = 0;            ///< dropout rate of the inputs; the same mask at all steps
  double recurrent_dropout = 0;  ///< dropout rate of the states in recurrent products
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
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

/// Long short-term memory (keras.layers.LSTM), with carry k' = f · k + i · activation(c) and output
/// h' = o · activation(k'): i, f, c and o are the quarters of x · kernel + bias +
/// h · recurrent_kernel, with recurrent_activation applied to i, f and o.
///
/// Shape: (batch, time, features) -> (batch, units), or with return_sequences (batch, time, units),
/// in the order in which the steps are read. Initial states h and k, each (batch, units), may be
/// passed as further inputs; with return_state the final ones are further outputs. A masked step
/// keeps the states and repeats the previous output.
/// Weights: lstm_cell/kernel (features, 4 · units), lstm_cell/recurrent_kernel (units, 4 · units),
/// lstm_cell/bias (4 · units).
/// Communication: none if the batch is sharded; sharded steps are gathered.
///
///     LSTM(64, {.dropout = 0.2, .return_sequences = true})
class LSTM : public RecurrentHandle {
 public:
  /// `units`: extent of a state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit LSTM(int64_t units, const LSTMOptions& options = {});
};

}  // namespace tessera
