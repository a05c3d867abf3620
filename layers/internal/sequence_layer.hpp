#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <tessera/framework/nn/internal/layer_states.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The options of the loop over time.
struct SequenceOptions {
  bool return_sequences = false, return_state = false, go_backwards = false, stateful = false;
  bool zero_output_for_mask = false;
  RegularizerHandle activity_regularizer = {};
};

/// Returns the loop's options among those of a layer.
template <class Options>
SequenceOptions sequence_options(const Options& o) {
  SequenceOptions sequence{o.return_sequences, o.return_state,         o.go_backwards,
                           o.stateful,         o.zero_output_for_mask, {}};
  if constexpr (requires { o.activity_regularizer; }) {
    sequence.activity_regularizer = o.activity_regularizer;
  }
  return sequence;
}

/// The loop over time (keras.layers.RNN). Inputs: a sequence (batch, time, …), then optionally the
/// initial states (default: zeros). Outputs: the last step's output (batch, …), or with
/// return_sequences all of them (batch, time, …), in the order in which the steps are read; then
/// with return_state the final states. A masked step keeps the states and repeats the previous
/// output.
/// A stateful layer starts from the final states of the previous call, as constants: gradients end
/// where a batch begins.
class SequenceLayer : public Layer, public HasStates {
 public:
  Shape output_shape(const Shapes& inputs) const final { return output_shapes(inputs)[0]; }
  /// Throws ShapeError for inputs that do not fit.
  Shapes output_shapes(const Shapes& inputs) const final;
  bool supports_masking() const final { return true; }
  const SequenceOptions& sequence() const { return sequence_; }
  /// Sets the states of a stateful layer to zeros (keras.layers.RNN.reset_state). The next batch
  /// may have another number of rows.
  void reset_state();
  std::vector<LayerState> states() const final;
  void set_states(const std::vector<DTensor>& values) final;

 protected:
  /// Returns a step's output, then the next states, from its input and the current states.
  using StepFunction =
      std::function<std::vector<DTensor>(const DTensor& x, const std::vector<DTensor>& states)>;
  /// The steps of a call, in the order of the sequence.
  struct Steps {
    std::vector<DTensor> inputs;
    StepFunction step;
  };

  SequenceLayer(const LayerOptions& common, const SequenceOptions& sequence)
      : Layer(common), sequence_(sequence) {}
  /// Throws ShapeError unless the layer takes sequences of this shape.
  virtual void check_sequence(const Shape& x) const = 0;
  /// Returns the states' shapes for a sequence's, which is empty if it is unknown: then all extents
  /// that depend on it are -1. At least one state; all have the rank of a step's output.
  virtual Shapes state_shapes(const Shape& x) const = 0;
  /// Returns the shape of a step's output (default: that of the first state).
  virtual Shape step_shape(const Shape& x) const { return state_shapes(x)[0]; }
  virtual Steps steps(const DTensor& x, const CallContext& context) = 0;
  /// All steps of a call at once: the outputs, (time, batch, …), and the final states, in the order
  /// in which the steps are read.
  struct AllSteps {
    DTensor outputs;
    std::vector<DTensor> states;
  };
  /// Computes all steps in one operation, which is faster, or returns none: then steps() is called.
  /// With a mask, a masked step repeats the states.
  virtual std::optional<AllSteps> all_steps(const DTensor& x, const CallContext& context,
                                            const std::vector<DTensor>& states,
                                            const DTensor& mask) {
    static_cast<void>(x), static_cast<void>(context), static_cast<void>(states);
    static_cast<void>(mask);
    return std::nullopt;
  }

  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) final;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) final;

 private:
  struct LoopState;
  /// Runs all_steps() where its masks mean what the loop's do.
  bool run_all(const Inputs& inputs, const CallContext& context, LoopState& loop);
  std::vector<DTensor> first_states(const Inputs& inputs);
  void make_states(const std::vector<DTensor>& values);
  /// Makes states of zeros unless there are some, and places them like `zeros`.
  void prepare_states(const std::vector<DTensor>& zeros);
  void keep_states(const std::vector<DTensor>& states);
  std::vector<DTensor> step_masks(const DTensor& x) const;
  void run(const DTensor& x, const CallContext& context, LoopState& loop);

  SequenceOptions sequence_;
  std::vector<Variable> states_;  ///< states of a stateful layer, between calls
  /// Version of the first state after the latest reset_state().
  std::optional<uint64_t> reset_version_;
};

}  // namespace tessera::detail
