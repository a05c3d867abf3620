#pragma once

#include <tessera/layers/recurrent/recurrent.hpp>

namespace tessera {

struct LSTMOptions {
  ActivationRef activation = "tanh";
  ActivationRef recurrent_activation = "sigmoid";
  bool use_bias = true;
  InitializerHandle kernel_initializer = "glorot_uniform";
  InitializerHandle recurrent_initializer = "orthogonal";
  InitializerHandle bias_initializer = "zeros";
  bool unit_forget_bias = true;  ///< the forget gate's bias starts at 1
  RegularizerHandle kernel_regularizer = {};
  RegularizerHandle recurrent_regularizer = {};
  RegularizerHandle bias_regularizer = {};
  RegularizerHandle activity_regularizer = {};  ///< of the outputs, divided by the rows
  ConstraintHandle kernel_constraint = {};
  ConstraintHandle recurrent_constraint = {};
  ConstraintHandle bias_constraint = {};
  double dropout = 0;            ///< of the inputs, the same at all steps
  double recurrent_dropout = 0;  ///< of the states that the recurrent kernel takes
  std::optional<int64_t> seed = std::nullopt;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;  ///< a batch begins with the states that the one before it left
  bool unroll = false;    ///< changes nothing
  bool zero_output_for_mask = false;  ///< masked steps give zeros
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Long short-term memory (keras.layers.LSTM): with i, f, c and o the quarters of
/// x · kernel + bias + h · recurrent_kernel, of which i, f and o pass recurrent_activation,
/// c' = f · c + i · activation(c) and h' = o · activation(c').
/// Inputs, outputs, masks and layouts as RecurrentLayer; two states, h and c. Weights:
/// lstm_cell/kernel (features, 4 units), recurrent_kernel (units, 4 units), bias (4 units).
class LSTMLayer final : public RecurrentLayer {
 public:
  LSTMLayer(int64_t units, const LSTMOptions& options);
  Json config() const override;

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override;

 private:
  LSTMOptions options_;
};

class LSTM : public RecurrentHandle {
 public:
  /// Throws ConfigError for units < 1, a dropout outside [0, 1) or an unknown name.
  explicit LSTM(int64_t units, const LSTMOptions& options = {})
      : RecurrentHandle(std::make_shared<LSTMLayer>(units, options)) {}
  static LSTM from_config(JsonObject& config);
};

}  // namespace tessera
