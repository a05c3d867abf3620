#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/forget_bias.hpp>
#include <tessera/layers/internal/gated_cell.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>
#include <tessera/layers/recurrent/cells.hpp>

namespace tessera {

using namespace detail;

namespace {

struct LSTMArguments : LSTMOptions {
  int64_t units = 0;
};

template <class Visit>
void fields(LSTMArguments& a, const Visit& visit) {
  ExtentOption units{a.units};
  visit("units", units);
  recurrent_fields(a, visit);
}

template <class Options>
CellSpec lstm_spec(const char* layer, const Options& options) {
  CellSpec spec{layer, "lstm_cell", 2, {4}, false, {}};
  if (options.unit_forget_bias) spec.bias_initializer = forget_bias(options.bias_initializer);
  return spec;
}

/// Returns output and carry from the four gates' sums (batch, 4 · units) and the carry before.
/// `options` has the activations.
template <class Options>
std::vector<DTensor> lstm_states(const DTensor& sums, const DTensor& carry_before,
                                 const Options& options) {
  const std::vector<DTensor> gates =
      ops::unstack(ops::reshape(sums, {sums.size(0), 4, sums.size(1) / 4}), 1);
  const ActivationHandle& gate = options.recurrent_activation;
  const ActivationHandle& activation = options.activation;
  const DTensor carry = gate(gates[1]) * carry_before + gate(gates[0]) * activation(gates[2]);
  return {gate(gates[3]) * activation(carry), carry};
}

class LSTMLayer final : public LayerOf<LSTMLayer, LSTMArguments, RecurrentLayer> {
 public:
  static constexpr const char* keras_name = "LSTM";
  explicit LSTMLayer(const LSTMArguments& arguments)
      : LayerOf(arguments, lstm_spec(keras_name, arguments), arguments.units,
                copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::optional<RecurrentKind> kind() const override {
    return usual_activations(arguments_) ? std::optional(RecurrentKind::lstm) : std::nullopt;
  }
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override {
    return lstm_states(x + recurrent(states[0]), states[1], arguments_);
  }
};

const RegisteredLayerOf<LSTMLayer> registered_lstm;

struct LSTMCellArguments : LSTMCellOptions {
  int64_t units = 0;
};

template <class Visit>
void fields(LSTMCellArguments& a, const Visit& visit) {
  ExtentOption units{a.units};
  visit("units", units);
  cell_fields(a, visit);
}

class LSTMCellLayer final : public LayerOf<LSTMCellLayer, LSTMCellArguments, GatedCell> {
 public:
  static constexpr const char* keras_name = "LSTMCell";
  explicit LSTMCellLayer(const LSTMCellArguments& arguments)
      : LayerOf(arguments, lstm_spec(keras_name, arguments), arguments.units,
                copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::vector<DTensor> next_states(const DTensor& x, const std::vector<DTensor>& states,
                                   const RecurrentProduct& recurrent) const override {
    return lstm_states(x + recurrent(states[0]), states[1], arguments_);
  }
};

const RegisteredLayerOf<LSTMCellLayer> registered_lstm_cell;

}  // namespace

LSTM::LSTM(int64_t units, const LSTMOptions& options)
    : RecurrentHandle(std::make_shared<LSTMLayer>(LSTMArguments{options, units})) {}

LSTMCell::LSTMCell(int64_t units, const LSTMCellOptions& options)
    : LayerHandle(make_layer<LSTMCellLayer>(LSTMCellArguments{options, units})) {}

}  // namespace tessera
