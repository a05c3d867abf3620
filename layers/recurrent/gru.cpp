#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(GRUOptions& o, const Visit& visit) {
  recurrent_fields(o, visit);
}

namespace {

CellSpec gru_spec(const GRUOptions& options) {
  if (options.reset_after) return {"GRU", "gru_cell", 1, {3}, true, {}};
  return {"GRU", "gru_cell", 1, {2, 1}, false, {}};
}

class GRULayer final : public RecurrentLayer {
 public:
  GRULayer(int64_t units, const GRUOptions& options)
      : RecurrentLayer(gru_spec(options), units, copied_options<RecurrentOptions>(options)),
        options_(options) {
    track_activations(options);
  }
  Json config() const override { return layer_config(*this, {{"units", units()}}, options_); }

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override;

 private:
  GRUOptions options_;
};

const RegisteredLayer registered_gru("GRU", [](JsonObject& config) {
  const auto options = layer_options_from<GRUOptions>(config);
  return GRU(take_extent(config, "units"), options);
});

std::vector<DTensor> GRULayer::step(const DTensor& x, const std::vector<DTensor>& states,
                                    const RecurrentProduct& recurrent) const {
  const auto by_gate = [&](const DTensor& sums, int64_t gates) {
    return ops::unstack(ops::reshape(sums, {sums.size(0), gates, units()}), 1);
  };
  const ActivationHandle& gate = options_.recurrent_activation;
  const std::vector<DTensor> inner = by_gate(recurrent(states[0]), options_.reset_after ? 3 : 2);
  const std::vector<DTensor> outer = by_gate(x, 3);
  const DTensor z = gate(outer[0] + inner[0]);
  const DTensor r = gate(outer[1] + inner[1]);
  const DTensor product = options_.reset_after ? r * inner[2] : recurrent(r * states[0], 1);
  const DTensor candidate = options_.activation(outer[2] + product);
  return {candidate + z * (states[0] - candidate)};
}

}  // namespace

GRU::GRU(int64_t units, const GRUOptions& options)
    : RecurrentHandle(std::make_shared<GRULayer>(units, options)) {}

}  // namespace tessera
