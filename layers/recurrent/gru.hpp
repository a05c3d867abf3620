#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/layers/recurrent/recurrent_handle.hpp>

namespace tessera {

/// Options of GRU.
struct GRUOptions {
  ActivationHandle activation = "tanh";                     ///< the candidate's, by Keras' name
  ActivationHandle recurrent_activation = "sigmoid";        ///< the gates', by Keras' name
  bool use_bias = true;                                     ///< adds `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< first values of `kernel`
  InitializerHandle recurrent_initializer = "orthogonal";   ///< first values of `recurrent_kernel`
  InitializerHandle bias_initializer = "zeros";             ///< first values of `bias`
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
  bool reset_after = true;            ///< the reset gate acts on the product with recurrent_kernel
  bool zero_output_for_mask = false;  ///< masked steps give zeros, not the output before
  std::string name = "";              ///< first part of the weights' paths
  std::string dtype = "";             ///< policy; the default one if empty
  bool trainable = true;              ///< whether training changes the weights
};

/// Gated recurrent unit (keras.layers.GRU): with z and r the first thirds of
/// x · kernel + bias + h · recurrent_kernel after recurrent_activation and u the activation of the
/// last, where r multiplies the product with h (reset_after), or h before it,
/// h' = z · h + (1 - z) · u.
///
/// Shape: (batch, time, features) -> (batch, units), or with return_sequences (batch, time, units),
/// in the order in which steps are read. It may be called with the first state, (batch, units), as
/// a second input, and gives the last one as a second output with return_state. A step that the
/// input's mask leaves out keeps the state and repeats the output before it.
/// Weights: gru_cell/kernel (features, 3 · units), gru_cell/recurrent_kernel (units, 3 · units),
/// gru_cell/bias (3 · units), or with reset_after (2, 3 · units), the second row of the products
/// with h.
/// Communication: none if the batch is sharded; sharded steps are gathered.
///
///     GRU(64, {.dropout = 0.2, .return_sequences = true})
class GRU : public RecurrentHandle {
 public:
  /// `units` numbers in a state. Throws ConfigError for units < 1, a dropout outside [0, 1) or an
  /// unknown name.
  explicit GRU(int64_t units, const GRUOptions& options = {});
};

}  // namespace tessera
