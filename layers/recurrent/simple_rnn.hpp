#pragma once

#include <tessera/layers/recurrent/recurrent.hpp>

namespace tessera {

struct SimpleRNNOptions {
  ActivationRef activation = "tanh";
  bool use_bias = true;
  InitializerHandle kernel_initializer = "glorot_uniform";
  InitializerHandle recurrent_initializer = "orthogonal";
  InitializerHandle bias_initializer = "zeros";
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

/// h' = activation(x · kernel + bias + h · recurrent_kernel), step by step
/// (keras.layers.SimpleRNN). Inputs, outputs, masks and layouts as RecurrentLayer; one state, h.
/// Weights: simple_rnn_cell/kernel (features, units), recurrent_kernel (units, units), bias
/// (units).
class SimpleRNNLayer final : public RecurrentLayer {
 public:
  SimpleRNNLayer(int64_t units, const SimpleRNNOptions& options);
  Json config() const override;

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override;

 private:
  SimpleRNNOptions options_;
};

class SimpleRNN : public RecurrentHandle {
 public:
  /// Throws ConfigError for units < 1, a dropout outside [0, 1) or an unknown name.
  explicit SimpleRNN(int64_t units, const SimpleRNNOptions& options = {})
      : RecurrentHandle(std::make_shared<SimpleRNNLayer>(units, options)) {}
  static SimpleRNN from_config(JsonObject& config);
};

}  // namespace tessera
