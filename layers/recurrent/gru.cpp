#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/gated_cell.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>
#include <tessera/layers/recurrent/cells.hpp>

namespace tessera {

using namespace detail;

namespace {

struct GRUArguments : GRUOptions {
  int64_t units = 0;
};

template <class Visit>
void fields(GRUArguments& a, const Visit& visit) {
  ExtentOption units{a.units};
  visit("units", units);
  recurrent_fields(a, visit);
}

CellSpec gru_spec(const char* layer, bool reset_after) {
  if (reset_after) return {layer, "gru_cell", 1, {3}, true, {}};
  return {layer, "gru_cell", 1, {2, 1}, false, {}};
}

/// Returns the next state from the projected input (batch, 3 · units) and the current state.
/// `options` has the activations and reset_after.
template <class Options>
DTensor gru_state(const DTensor& x, const DTensor& state, const RecurrentProduct& recurrent,
                  const Options& options) {
  const int64_t units = state.size(1);
  const auto by_gate = [&](const DTensor& sums, int64_t gates) {
    return ops::unstack(ops::reshape(sums, {sums.size(0), gates, units}), 1);
  };
  const ActivationHandle& gate = options.recurrent_activation;
  const std::vector<DTensor> inner = by_gate(recurrent(state), options.reset_after ? 3 : 2);
  const std::vector<DTensor> outer = by_gate(x, 3);
  const DTensor z = gate(outer[0] + inner[0]);
  const DTensor r = gate(outer[1] + inner[1]);
  const DTensor product = options.reset_after ? r * inner[2] : recurrent(r * state, 1);
  const DTensor candidate = options.activation(outer[2] + product);
  return candidate + z * (state - candidate);
}

class GRULayer final : public LayerOf<GRULayer, GRUArguments, RecurrentLayer> {
 public:
  static constexpr const char* keras_name = "GRU";
  explicit GRULayer(const GRUArguments& arguments)
      : LayerOf(arguments, gru_spec(keras_name, arguments.reset_after), arguments.units,
                copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::optional<RecurrentKind> kind() const override {
    const bool usual = arguments_.reset_after && usual_activations(arguments_);
    return usual ? std::optional(RecurrentKind::gru) : std::nullopt;
  }
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override {
    return {gru_state(x, states[0], recurrent, arguments_)};
  }
};

const RegisteredLayerOf<GRULayer> registered_gru;

struct GRUCellArguments : GRUCellOptions {
  int64_t units = 0;
};

template <class Visit>
void fields(GRUCellArguments& a, const Visit& visit) {
  ExtentOption units{a.units};
  visit("units", units);
  cell_fields(a, visit);
}

class GRUCellLayer final : public LayerOf<GRUCellLayer, GRUCellArguments, GatedCell> {
 public:
  static constexpr const char* keras_name = "GRUCell";
  explicit GRUCellLayer(const GRUCellArguments& arguments)
      : LayerOf(arguments, gru_spec(keras_name, arguments.reset_after), arguments.units,
                copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::vector<DTensor> next_states(const DTensor& x, const std::vector<DTensor>& states,
                                   const RecurrentProduct& recurrent) const override {
    return {gru_state(x, states[0], recurrent, arguments_)};
  }
};

const RegisteredLayerOf<GRUCellLayer> registered_gru_cell;

}  // namespace

GRU::GRU(int64_t units, const GRUOptions& options)
    : RecurrentHandle(std::make_shared<GRULayer>(GRUArguments{options, units})) {}

GRUCell::GRUCell(int64_t units, const GRUCellOptions& options)
    : LayerHandle(make_layer<GRUCellLayer>(GRUCellArguments{options, units})) {}

}  // namespace tessera
