#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/internal/layer_of.hpp>

/// The parts that SimpleRNN, LSTM and GRU share with their cells.
namespace tessera::detail {

/// The options that all recurrent layers have and the loop over time needs.
struct RecurrentOptions {
  bool use_bias = true;
  InitializerHandle kernel_initializer, recurrent_initializer, bias_initializer;
  RegularizerHandle kernel_regularizer, recurrent_regularizer, bias_regularizer,
      activity_regularizer;
  ConstraintHandle kernel_constraint, recurrent_constraint, bias_constraint;
  double dropout = 0, recurrent_dropout = 0;
  std::optional<int64_t> seed;
  bool return_sequences = false, return_state = false, go_backwards = false, stateful = false;
  bool zero_output_for_mask = false;
  std::string name, dtype;
  bool trainable = true;
};

/// Describes a kind of cell.
struct CellSpec {
  std::string layer;              ///< Keras' class name
  std::string name;               ///< Keras' cell name, part of the weights' paths
  size_t states = 1;              ///< number of states; the first is the output
  std::vector<int64_t> products;  ///< gates of each product with the recurrent kernel, in order
  bool recurrent_bias = false;    ///< whether the bias has a second row, for `products`
  InitializerHandle bias_initializer;  ///< overrides the settings' one

  int64_t gates() const;
};

/// Products of states with the recurrent kernel, prepared once for all steps of a call.
class RecurrentProduct {
 public:
  /// kernel (units, gates · units); bias (gates · units) or undefined; dropped (gates, batch,
  /// units), dropout factors of the state per gate, or undefined.
  RecurrentProduct(const CellSpec& spec, const DTensor& kernel, const DTensor& bias,
                   const DTensor& dropped);
  /// Maps (batch, units) to (batch, gates of product `i` · units).
  DTensor operator()(const DTensor& state, size_t i = 0) const;

 private:
  std::vector<DTensor> kernels_, biases_, dropped_;
};

/// Reorders (rows, gates · units) to (gates, rows, units).
DTensor gates_first(const DTensor& kernel, int64_t gates);

/// Throws ConfigError for units < 1 and rates outside [0, 1).
void check_gated(const CellSpec& spec, int64_t units, const RecurrentOptions& settings);

/// Adds to a SequenceLayer or an RNNCell the weights of a cell of gates: kernel (features,
/// gates · units), recurrent_kernel (units, gates · units) and bias.
template <class Base>
class Gated : public Base {
 protected:
  /// `base`: what Base's constructor takes. Throws ConfigError for units < 1 and rates outside
  /// [0, 1).
  template <class... Arguments>
  Gated(CellSpec spec, int64_t units, RecurrentOptions settings, const Arguments&... base)
      : Base(base...), spec_(std::move(spec)), units_(units), settings_(std::move(settings)) {
    check_gated(spec_, units_, settings_);
  }
  /// Tracks activations that are layers as sublayers.
  template <class Options>
  void track_activations(const Options& o) {
    if (o.activation.layer()) this->track("activation", o.activation.layer());
    if constexpr (requires { o.recurrent_activation; }) {
      const auto& gates = o.recurrent_activation.layer();
      if (gates) this->track("recurrent_activation", gates);
    }
  }
  /// Makes the weights, whose names begin with `prefix`.
  void make_gated_weights(const std::string& prefix, int64_t features);
  /// Throws ShapeError unless x has as many features as when built.
  void check_features(const Shape& x) const;
  /// Whether each gate has its own dropout mask of the inputs, as in Keras if recurrent_dropout is
  /// used.
  bool drops_by_gate() const { return settings_.recurrent_dropout > 0 && spec_.gates() > 1; }
  /// Draws dropout factors, 0 or 1 / (1 - rate), for all steps at once; undefined without dropout.
  DTensor dropped(const Shape& shape, double rate, const CallContext& context,
                  const Mesh& mesh) const;
  /// Returns the part of the bias for the inputs, or for the recurrent products; may be undefined.
  DTensor input_bias() const;
  DTensor recurrent_bias() const;
  RecurrentProduct recurrence(int64_t rows, const CallContext& context, const Mesh& mesh) const;

  CellSpec spec_;
  int64_t units_;
  RecurrentOptions settings_;
  Variable kernel_, recurrent_kernel_, bias_;
};

/// Visits the options of a recurrent layer; those that its struct lacks are skipped.
template <class Options, class Visit>
void recurrent_fields(Options& o, const Visit& visit) {
  if constexpr (requires { o.activation; }) visit("activation", o.activation);
  if constexpr (requires { o.recurrent_activation; }) {
    visit("recurrent_activation", o.recurrent_activation);
  }
  visit("use_bias", o.use_bias);
  kernel_fields(o, visit);
  visit("recurrent_initializer", o.recurrent_initializer);
  if constexpr (requires { o.unit_forget_bias; }) visit("unit_forget_bias", o.unit_forget_bias);
  visit("recurrent_regularizer", o.recurrent_regularizer);
  visit("recurrent_constraint", o.recurrent_constraint);
  visit("dropout", o.dropout);
  visit("recurrent_dropout", o.recurrent_dropout);
  if constexpr (requires { o.reset_after; }) visit("reset_after", o.reset_after);
  visit("seed", o.seed);
  visit("return_sequences", o.return_sequences);
  visit("return_state", o.return_state);
  visit("go_backwards", o.go_backwards);
  visit("stateful", o.stateful);
  if constexpr (requires { o.unroll; }) visit("unroll", o.unroll);
  visit("zero_output_for_mask", o.zero_output_for_mask);
}

template <class Visit>
void fields(RecurrentOptions& s, const Visit& visit) {
  recurrent_fields(s, visit);
}

}  // namespace tessera::detail
