#pragma once

#include <tessera/layers/recurrent/recurrent.hpp>

namespace tessera {

struct GRUOptions {
  ActivationRef activation = "tanh";
  ActivationRef recurrent_activation = "sigmoid";
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
  bool reset_after = true;  ///< the reset gate acts on the product with the recurrent kernel
  bool zero_output_for_mask = false;  ///< masked steps give zeros
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Gated recurrent unit (keras.layers.GRU): with z and r the first thirds of
/// x · kernel + bias + h · recurrent_kernel after recurrent_activation and u the activation of the
/// last, where r multiplies the product with h (reset_after), or h before it,
/// h' = z · h + (1 - z) · u.
/// Inputs, outputs, masks and layouts as RecurrentLayer; one state, h. Weights: gru_cell/kernel
/// (features, 3 units), recurrent_kernel (units, 3 units), bias (3 units), or with reset_after
/// (2, 3 units), the second row of the products with h.
class GRULayer final : public RecurrentLayer {
 public:
  GRULayer(int64_t units, const GRUOptions& options);
  Json config() const override;

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override;

 private:
  GRUOptions options_;
};

class GRU : public RecurrentHandle {
 public:
  /// Throws ConfigError for units < 1, a dropout outside [0, 1) or an unknown name.
  explicit GRU(int64_t units, const GRUOptions& options = {})
      : RecurrentHandle(std::make_shared<GRULayer>(units, options)) {}
  static GRU from_config(JsonObject& config);
};

}  // namespace tessera
