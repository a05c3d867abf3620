#include <tessera/layers/recurrent/lstm.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {
namespace {

/// Another initializer's draws, but ones for the second quarter.
class ForgetBias final : public Initializer {
 public:
  explicit ForgetBias(InitializerHandle others) : others_(std::move(others)) {}
  std::string class_name() const override { return "ForgetBias"; }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    const int64_t units = shape[0] / 4;
    return ops::concat({others_->draw({units}, dtype, seed), ones({units}, dtype),
                        others_->draw({2 * units}, dtype, fold_in(seed, 1))});
  }

 private:
  InitializerHandle others_;
};

CellSpec lstm_form(const LSTMOptions& options) {
  CellSpec form{"LSTM", "lstm_cell", 2, {4}, false, {}};
  if (options.unit_forget_bias) {
    form.bias_initializer =
        InitializerHandle(std::make_shared<ForgetBias>(options.bias_initializer));
  }
  return form;
}

}  // namespace

LSTMLayer::LSTMLayer(int64_t units, const LSTMOptions& options)
    : RecurrentLayer(lstm_form(options), recurrent_settings(units, options),
                     {options.name, options.dtype, options.trainable}),
      options_(options) {}

Json LSTMLayer::config() const {
  Json json = Layer::config();
  put_recurrent(json, settings().units, options_);
  return json;
}

std::vector<DTensor> LSTMLayer::step(const DTensor& x, const std::vector<DTensor>& states,
                                     const RecurrentProduct& recurrent) const {
  const DTensor sums = x + recurrent(states[0]);
  const std::vector<DTensor> gates =
      ops::unstack(ops::reshape(sums, {sums.size(0), 4, settings().units}), 1);
  const ActivationRef& gate = options_.recurrent_activation;
  const ActivationRef& activation = options_.activation;
  const DTensor carry = gate(gates[1]) * states[1] + gate(gates[0]) * activation(gates[2]);
  return {gate(gates[3]) * activation(carry), carry};
}

LSTM LSTM::from_config(JsonObject& config) {
  return recurrent_from_config<LSTM, LSTMOptions>(config);
}

}  // namespace tessera
