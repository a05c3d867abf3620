#pragma once

#include <optional>
#include <vector>

#include <tessera/framework/ops/internal/recurrent.hpp>
#include <tessera/layers/internal/gated.hpp>
#include <tessera/layers/internal/sequence_layer.hpp>

namespace tessera::detail {

/// SimpleRNN, LSTM and GRU. Inputs: x (batch, time, features), then optionally the initial states,
/// each (batch, units).
/// The inputs of all steps are projected in one product. With the default activations and without
/// recurrent dropout, all steps are one operation.
/// Communication: none if the batch is sharded; sharded steps are gathered, and so are sharded
/// kernels: once for all steps if these are one operation, else the states in each step.
class RecurrentLayer : public Gated<SequenceLayer> {
 protected:
  /// Throws ConfigError for units < 1 and rates outside [0, 1).
  RecurrentLayer(const LayerOptions& common, const CellSpec& spec, int64_t units,
                 const RecurrentOptions& settings)
      : Gated(spec, units, settings, common, sequence_options(settings)) {}
  /// Returns the next states from the projected input (batch, gates · units) and the current
  /// states.
  virtual std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                                    const RecurrentProduct& recurrent) const = 0;

  void make_weights(const Shapes& inputs) final {
    make_gated_weights(spec_.name + "/", inputs[0][2]);
  }
  void check_sequence(const Shape& x) const final;
  Shapes state_shapes(const Shape& x) const final;
  Steps steps(const DTensor& x, const CallContext& context) final;
  std::optional<AllSteps> all_steps(const DTensor& x, const CallContext& context,
                                    const std::vector<DTensor>& states, const DTensor& mask) final;
  /// Returns the product of inputs and kernel, with input dropout and without the bias.
  DTensor multiply(const DTensor& x, const DTensor& kernel, const CallContext& context) const;
  /// Returns what recurrence() computes if the activations are tanh and sigmoid; none for others.
  virtual std::optional<RecurrentKind> kind() const = 0;

 private:
  /// Returns the inputs of all steps times the kernel, (batch, time, gates · units).
  DTensor project(const DTensor& x, const DTensor& kernel, const CallContext& context) const;
};

/// Whether a layer's activations are tanh and, for gates, sigmoid.
template <class Options>
bool usual_activations(const Options& o) {
  if (o.activation.name() != "tanh") return false;
  if constexpr (requires { o.recurrent_activation; }) {
    return o.recurrent_activation.name() == "sigmoid";
  }
  return true;
}

}  // namespace tessera::detail
