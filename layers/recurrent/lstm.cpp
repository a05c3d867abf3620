#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LSTMOptions& o, const Visit& visit) {
  recurrent_fields(o, visit);
}

namespace {

/// Draws by another initializer, with ones in the second quarter.
class ForgetBias final : public Initializer {
 public:
  explicit ForgetBias(InitializerHandle initializer) : initializer_(std::move(initializer)) {}
  std::string class_name() const override { return "ForgetBias"; }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    const int64_t units = shape[0] / 4;
    return ops::concat({initializer_->draw({units}, dtype, seed), ones({units}, dtype),
                        initializer_->draw({2 * units}, dtype, fold_in(seed, 1))});
  }

 private:
  InitializerHandle initializer_;
};

CellSpec lstm_spec(const LSTMOptions& options) {
  CellSpec spec{"LSTM", "lstm_cell", 2, {4}, false, {}};
  if (options.unit_forget_bias) {
    spec.bias_initializer =
        InitializerHandle(std::make_shared<ForgetBias>(options.bias_initializer));
  }
  return spec;
}

class LSTMLayer final : public RecurrentLayer {
 public:
  LSTMLayer(int64_t units, const LSTMOptions& options)
      : RecurrentLayer(lstm_spec(options), units, copied_options<RecurrentOptions>(options)),
        options_(options) {
    track_activations(options);
  }
  Json config() const override { return layer_config(*this, {{"units", units()}}, options_); }

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override;

 private:
  LSTMOptions options_;
};

const RegisteredLayer registered_lstm("LSTM", [](JsonObject& config) {
  const auto options = layer_options_from<LSTMOptions>(config);
  return LSTM(take_extent(config, "units"), options);
});

std::vector<DTensor> LSTMLayer::step(const DTensor& x, const std::vector<DTensor>& states,
                                     const RecurrentProduct& recurrent) const {
  const DTensor sums = x + recurrent(states[0]);
  const std::vector<DTensor> gates =
      ops::unstack(ops::reshape(sums, {sums.size(0), 4, units()}), 1);
  const ActivationHandle& gate = options_.recurrent_activation;
  const ActivationHandle& activation = options_.activation;
  const DTensor carry = gate(gates[1]) * states[1] + gate(gates[0]) * activation(gates[2]);
  return {gate(gates[3]) * activation(carry), carry};
}

}  // namespace

LSTM::LSTM(int64_t units, const LSTMOptions& options)
    : RecurrentHandle(std::make_shared<LSTMLayer>(units, options)) {}

}  // namespace tessera
