#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/gated_cell.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>
#include <tessera/layers/recurrent/cells.hpp>

namespace tessera {

using namespace detail;

namespace {

struct SimpleRNNArguments : SimpleRNNOptions {
  int64_t units = 0;
};

template <class Visit>
void fields(SimpleRNNArguments& a, const Visit& visit) {
  ExtentOption units{a.units};
  visit("units", units);
  recurrent_fields(a, visit);
}

class SimpleRNNLayer final : public LayerOf<SimpleRNNLayer, SimpleRNNArguments, RecurrentLayer> {
 public:
  static constexpr const char* keras_name = "SimpleRNN";
  explicit SimpleRNNLayer(const SimpleRNNArguments& arguments)
      : LayerOf(arguments, CellSpec{keras_name, "simple_rnn_cell", 1, {1}, false, {}},
                arguments.units, copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::optional<RecurrentKind> kind() const override {
    return usual_activations(arguments_) ? std::optional(RecurrentKind::simple_rnn) : std::nullopt;
  }
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override {
    return {arguments_.activation(x + recurrent(states[0]))};
  }
};

const RegisteredLayerOf<SimpleRNNLayer> registered_simple_rnn;

struct SimpleRNNCellArguments : SimpleRNNCellOptions {
  int64_t units = 0;
};

template <class Visit>
void fields(SimpleRNNCellArguments& a, const Visit& visit) {
  ExtentOption units{a.units};
  visit("units", units);
  cell_fields(a, visit);
}

class SimpleRNNCellLayer final
    : public LayerOf<SimpleRNNCellLayer, SimpleRNNCellArguments, GatedCell> {
 public:
  static constexpr const char* keras_name = "SimpleRNNCell";
  explicit SimpleRNNCellLayer(const SimpleRNNCellArguments& arguments)
      : LayerOf(arguments, CellSpec{keras_name, "", 1, {1}, false, {}}, arguments.units,
                copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::vector<DTensor> next_states(const DTensor& x, const std::vector<DTensor>& states,
                                   const RecurrentProduct& recurrent) const override {
    return {arguments_.activation(x + recurrent(states[0]))};
  }
};

const RegisteredLayerOf<SimpleRNNCellLayer> registered_simple_rnn_cell;

}  // namespace

SimpleRNN::SimpleRNN(int64_t units, const SimpleRNNOptions& options)
    : RecurrentHandle(std::make_shared<SimpleRNNLayer>(SimpleRNNArguments{options, units})) {}

SimpleRNNCell::SimpleRNNCell(int64_t units, const SimpleRNNCellOptions& options)
    : LayerHandle(make_layer<SimpleRNNCellLayer>(SimpleRNNCellArguments{options, units})) {}

}  // namespace tessera
