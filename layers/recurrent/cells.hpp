#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of SimpleRNNCell.
struct SimpleRNNCellOptions {
  ActivationHandle activation = "tanh";                     ///< activation of the output
  bool use_bias = true;                                     ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< initializer of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle recurrent_regularizer = {};             ///< penalty on `recurrent_kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle recurrent_constraint = {};               ///< constraint on `recurrent_kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  double dropout = 0;            ///< dropout rate of the inputs; the same mask at all steps
  double recurrent_dropout = 0;  ///< dropout rate of the states in recurrent products
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// The step of a SimpleRNN (keras.layers.SimpleRNNCell), for RNN and StackedRNNCells.
///
/// Shape: (batch, features) and a state (batch, units) -> the output (batch, units), which is also
/// the next state.
/// Weights: kernel (features, units), recurrent_kernel (units, units), bias (units).
/// Communication: none if the batch is sharded.
///
///     RNN(SimpleRNNCell(32), {.return_sequences = true})
class SimpleRNNCell : public LayerHandle {
 public:
  /// `units`: extent of the state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit SimpleRNNCell(int64_t units, const SimpleRNNCellOptions& options = {});
};

/// Options of GRUCell.
struct GRUCellOptions {
  ActivationHandle activation = "tanh";                     ///< activation of the candidate
  ActivationHandle recurrent_activation = "sigmoid";        ///< activation of the gates
  bool use_bias = true;                                     ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< initializer of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle recurrent_regularizer = {};             ///< penalty on `recurrent_kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle recurrent_constraint = {};               ///< constraint on `recurrent_kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  double dropout = 0;            ///< dropout rate of the inputs; the same mask at all steps
  double recurrent_dropout = 0;  ///< dropout rate of the states in recurrent products
  bool reset_after = true;       ///< whether to reset after the product with recurrent_kernel
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// The step of a GRU (keras.layers.GRUCell), for RNN and StackedRNNCells.
///
/// Shape: (batch, features) and a state (batch, units) -> the output (batch, units), which is also
/// the next state.
/// Weights: kernel (features, 3 · units), recurrent_kernel (units, 3 · units), bias (3 · units), or
/// with reset_after (2, 3 · units).
/// Communication: none if the batch is sharded.
class GRUCell : public LayerHandle {
 public:
  /// `units`: extent of the state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit GRUCell(int64_t units, const GRUCellOptions& options = {});
};

/// Options of LSTMCell.
struct LSTMCellOptions {
  ActivationHandle activation = "tanh";               ///< activation of candidate and carry
  ActivationHandle recurrent_activation = "sigmoid";  ///< activation of the gates
  bool use_bias = true;                               ///< whether to add `bias`
  bool unit_forget_bias = true;  ///< whether the forget gate's bias starts at 1
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< initializer of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle recurrent_regularizer = {};             ///< penalty on `recurrent_kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle recurrent_constraint = {};               ///< constraint on `recurrent_kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  double dropout = 0;            ///< dropout rate of the inputs; the same mask at all steps
  double recurrent_dropout = 0;  ///< dropout rate of the states in recurrent products
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// The step of an LSTM (keras.layers.LSTMCell), for RNN and StackedRNNCells.
///
/// Shape: (batch, features) and states h and k, each (batch, units) -> the output (batch, units),
/// then the next states, the first of which is the output.
/// Weights: kernel (features, 4 · units), recurrent_kernel (units, 4 · units), bias (4 · units).
/// Communication: none if the batch is sharded.
///
///     RNN({LSTMCell(64), LSTMCell(32)})
class LSTMCell : public LayerHandle {
 public:
  /// `units`: extent of a state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit LSTMCell(int64_t units, const LSTMCellOptions& options = {});
};

}  // namespace tessera
