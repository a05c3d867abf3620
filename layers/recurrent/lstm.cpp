#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>

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

class LSTMLayer final : public LayerOf<LSTMLayer, LSTMArguments, RecurrentLayer> {
 public:
  static constexpr const char* keras_name = "LSTM";
  explicit LSTMLayer(const LSTMArguments& arguments)
      : LayerOf(arguments, lstm_spec(arguments), arguments.units,
                copied_options<RecurrentOptions>(arguments)) {
    track_activations(arguments);
  }

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override;
};

const RegisteredLayerOf<LSTMLayer> registered_lstm;

std::vector<DTensor> LSTMLayer::step(const DTensor& x, const std::vector<DTensor>& states,
                                     const RecurrentProduct& recurrent) const {
  const DTensor sums = x + recurrent(states[0]);
  const std::vector<DTensor> gates =
      ops::unstack(ops::reshape(sums, {sums.size(0), 4, units()}), 1);
  const ActivationHandle& gate = arguments_.recurrent_activation;
  const ActivationHandle& activation = arguments_.activation;
  const DTensor carry = gate(gates[1]) * states[1] + gate(gates[0]) * activation(gates[2]);
  return {gate(gates[3]) * activation(carry), carry};
}

}  // namespace

LSTM::LSTM(int64_t units, const LSTMOptions& options)
    : RecurrentHandle(std::make_shared<LSTMLayer>(LSTMArguments{options, units})) {}

}  // namespace tessera
