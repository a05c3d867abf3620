#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/layers/recurrent/recurrent_handle.hpp>

namespace tessera {

/// Options of LSTM.
struct LSTMOptions {
  ActivationHandle activation = "tanh";               ///< candidate's and carry's, by Keras' name
  ActivationHandle recurrent_activation = "sigmoid";  ///< the gates', by Keras' name
  bool use_bias = true;                               ///< adds `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< first values of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< first values of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< first values of `bias`
  bool unit_forget_bias = true;                             ///< the forget gate's bias starts at 1
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle recurrent_regularizer = {};             ///< penalty on `recurrent_kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};  ///< penalty on the outputs, divided by the rows
  ConstraintHandle kernel_constraint = {};      ///< what `kernel` is brought back to
  ConstraintHandle recurrent_constraint = {};   ///< what `recurrent_kernel` is brought back to
  ConstraintHandle bias_constraint = {};        ///< what `bias` is brought back to
  double dropout = 0;                           ///< share of the inputs dropped, alike at all steps
  double recurrent_dropout = 0;                 ///< share of the states dropped in their products
  std::optional<int64_t> seed = std::nullopt;   ///< folded into the stream of random numbers
  bool return_sequences = false;      ///< gives the outputs of all steps, not the last one
  bool return_state = false;          ///< gives the last states too, as further outputs
  bool go_backwards = false;          ///< reads the steps from the last to the first
  bool stateful = false;              ///< a batch begins with the states that the one before left
  bool unroll = false;                ///< steps are unrolled either way
  bool zero_output_for_mask = false;  ///< masked steps give zeros, not the output before
  std::string name = "";              ///< first part of the weights' paths
  std::string dtype = "";             ///< policy; the default one if empty
  bool trainable = true;              ///< whether training changes the weights
};

/// Long short-term memory (keras.layers.LSTM): with i, f, c and o the quarters of
/// x · kernel + bias + h · recurrent_kernel, of which i, f and o pass recurrent_activation, the
/// carry is k' = f · k + i · activation(c) and the output h' = o · activation(k').
///
/// Shape: (batch, time, features) -> (batch, units), or with return_sequences (batch, time, units),
/// in the order in which steps are read. It may be called with the first states h and k, each
/// (batch, units), as further inputs, and gives the last ones as further outputs with return_state.
/// A step that the input's mask leaves out keeps the states and repeats the output before it.
/// Weights: lstm_cell/kernel (features, 4 · units), lstm_cell/recurrent_kernel (units, 4 · units),
/// lstm_cell/bias (4 · units).
/// Communication: none if the batch is sharded; sharded steps are gathered.
///
///     LSTM(64, {.dropout = 0.2, .return_sequences = true})
class LSTM : public RecurrentHandle {
 public:
  /// `units` numbers in a state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit LSTM(int64_t units, const LSTMOptions& options = {});
};

}  // namespace tessera
