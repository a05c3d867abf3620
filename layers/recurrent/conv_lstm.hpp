#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/layers/axis_values.hpp>
#include <tessera/layers/recurrent/recurrent_handle.hpp>

namespace tessera {

/// Options of ConvLSTM1D, ConvLSTM2D and ConvLSTM3D.
struct ConvLSTMOptions {
  AxisValues strides = 1;                ///< strides of the inputs' convolution
  std::string padding = "valid";         ///< "valid" or "same", of the inputs
  std::string data_format = "";          ///< "channels_last" (default) or "channels_first"
  AxisValues dilation_rate = 1;          ///< dilation of `kernel`
  ActivationHandle activation = "tanh";  ///< activation of candidate and carry
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
  double dropout = 0;            ///< dropout rate of the inputs; the same masks at all steps
  double recurrent_dropout = 0;  ///< dropout rate of the states in recurrent convolutions
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

/// An LSTM over sequences of sequences, whose products are convolutions (keras.layers.ConvLSTM1D;
/// https://arxiv.org/abs/1506.04214).
///
/// Shape: (batch, time, steps, channels) -> (batch, steps', filters), or with return_sequences
/// (batch, time, steps', filters), as data_format orders the axes of a step.
/// Weights: conv_lstm_cell/kernel (kernel_size, channels, 4 · filters),
/// conv_lstm_cell/recurrent_kernel (kernel_size, filters, 4 · filters), conv_lstm_cell/bias
/// (4 · filters).
/// Communication: see ConvLSTM2D, here with one axis that may be sharded.
class ConvLSTM1D : public RecurrentHandle {
 public:
  /// `filters`: channels of a state; windows of `kernel_size` steps. Throws ConfigError for
  /// incompatible arguments or an unknown name.
  ConvLSTM1D(int64_t filters, const AxisValues& kernel_size, const ConvLSTMOptions& options = {});
};

/// An LSTM over sequences of images, whose products are convolutions (keras.layers.ConvLSTM2D;
/// https://arxiv.org/abs/1506.04214). The convolution of the inputs has the strides, the padding
/// and the dilation; that of the states keeps their extents.
///
/// Shape: (batch, time, height, width, channels) -> (batch, height', width', filters), or with
/// return_sequences (batch, time, height', width', filters), as data_format orders the axes of a
/// step. Initial states h and k, each with the shape of a step's output, may be passed as further
/// inputs; with return_state the final ones are further outputs. A masked step keeps the states and
/// repeats the previous output.
/// Weights: conv_lstm_cell/kernel (window height, window width, channels, 4 · filters),
/// conv_lstm_cell/recurrent_kernel (window height, window width, filters, 4 · filters),
/// conv_lstm_cell/bias (4 · filters).
/// Communication: none for a sharded batch; a sharded height or width fetches halo rows from its
/// neighbours at each step; sharded time is gathered.
///
///     ConvLSTM2D(16, 3, {.padding = "same", .return_sequences = true})
class ConvLSTM2D : public RecurrentHandle {
 public:
  /// `filters`: channels of a state; windows of `kernel_size`, {3, 5} or 3 for both axes. Throws
  /// ConfigError for incompatible arguments or an unknown name.
  ConvLSTM2D(int64_t filters, const AxisValues& kernel_size, const ConvLSTMOptions& options = {});
};

/// An LSTM over sequences of volumes, whose products are convolutions (keras.layers.ConvLSTM3D;
/// https://arxiv.org/abs/1506.04214).
///
/// Shape: (batch, time, depth, height, width, channels) -> (batch, depth', height', width',
/// filters), or with return_sequences (batch, time, depth', height', width', filters), as
/// data_format orders the axes of a step.
/// Weights: conv_lstm_cell/kernel (window…, channels, 4 · filters),
/// conv_lstm_cell/recurrent_kernel (window…, filters, 4 · filters), conv_lstm_cell/bias
/// (4 · filters).
/// Communication: see ConvLSTM2D, here with three axes that may be sharded.
class ConvLSTM3D : public RecurrentHandle {
 public:
  /// `filters`: channels of a state; windows of `kernel_size`, one integer per axis or one for all.
  /// Throws ConfigError for incompatible arguments or an unknown name.
  ConvLSTM3D(int64_t filters, const AxisValues& kernel_size, const ConvLSTMOptions& options = {});
};

}  // namespace tessera
