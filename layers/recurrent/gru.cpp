#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>

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

CellSpec gru_spec(const GRUOptions& options) {
  if (options.reset_after) return {"GRU", "gru_cell", 1, {3}, true, {}};
  return {"GRU", "gru_cell", 1, {2, 1}, false, {}};
}

class GRULayer final : public LayerOf<GRULayer, GRUArguments, RecurrentLayer> {
 public:
  static constexpr const char* keras_name = "GRU";
  explicit GRULayer(const GRUArguments& arguments)
      : LayerOf(arguments, gru_spec(arguments), arguments.units,
                copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override;
};

const RegisteredLayerOf<GRULayer> registered_gru;

std::vector<DTensor> GRULayer::step(const DTensor& x, const std::vector<DTensor>& states,
                                    const RecurrentProduct& recurrent) const {
  const auto by_gate = [&](const DTensor& sums, int64_t gates) {
    return ops::unstack(ops::reshape(sums, {sums.size(0), gates, units()}), 1);
  };
  const ActivationHandle& gate = arguments_.recurrent_activation;
  const std::vector<DTensor> inner = by_gate(recurrent(states[0]), arguments_.reset_after ? 3 : 2);
  const std::vector<DTensor> outer = by_gate(x, 3);
  const DTensor z = gate(outer[0] + inner[0]);
  const DTensor r = gate(outer[1] + inner[1]);
  const DTensor product = arguments_.reset_after ? r * inner[2] : recurrent(r * states[0], 1);
  const DTensor candidate = arguments_.activation(outer[2] + product);
  return {candidate + z * (states[0] - candidate)};
}

}  // namespace

GRU::GRU(int64_t units, const GRUOptions& options)
    : RecurrentHandle(std::make_shared<GRULayer>(GRUArguments{options, units})) {}

}  // namespace tessera
