#include <tessera/layers/recurrent/gru.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {

CellSpec gru_form(const GRUOptions& options) {
  if (options.reset_after) return {"GRU", "gru_cell", 1, {3}, true, {}};
  return {"GRU", "gru_cell", 1, {2, 1}, false, {}};
}

}  // namespace

GRULayer::GRULayer(int64_t units, const GRUOptions& options)
    : RecurrentLayer(gru_form(options), recurrent_settings(units, options),
                     {options.name, options.dtype, options.trainable}),
      options_(options) {}

Json GRULayer::config() const {
  Json json = Layer::config();
  put_recurrent(json, settings().units, options_);
  return json;
}

std::vector<DTensor> GRULayer::step(const DTensor& x, const std::vector<DTensor>& states,
                                    const RecurrentProduct& recurrent) const {
  const auto thirds = [&](const DTensor& sums, int64_t gates) {
    return ops::unstack(ops::reshape(sums, {sums.size(0), gates, settings().units}), 1);
  };
  const ActivationRef& gate = options_.recurrent_activation;
  const std::vector<DTensor> inner = thirds(recurrent(states[0]), options_.reset_after ? 3 : 2);
  const std::vector<DTensor> outer = thirds(x, 3);
  const DTensor z = gate(outer[0] + inner[0]);
  const DTensor r = gate(outer[1] + inner[1]);
  const DTensor product = options_.reset_after ? r * inner[2] : recurrent(r * states[0], 1);
  const DTensor candidate = options_.activation(outer[2] + product);
  return {candidate + z * (states[0] - candidate)};
}

GRU GRU::from_config(JsonObject& config) {
  return recurrent_from_config<GRU, GRUOptions>(config);
}

}  // namespace tessera
