#include <tessera/layers/recurrent/simple_rnn.hpp>

#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {

SimpleRNNLayer::SimpleRNNLayer(int64_t units, const SimpleRNNOptions& options)
    : RecurrentLayer({"SimpleRNN", "simple_rnn_cell", 1, {1}, false, {}},
                     recurrent_settings(units, options),
                     {options.name, options.dtype, options.trainable}),
      options_(options) {}

Json SimpleRNNLayer::config() const {
  Json json = Layer::config();
  put_recurrent(json, settings().units, options_);
  return json;
}

std::vector<DTensor> SimpleRNNLayer::step(const DTensor& x, const std::vector<DTensor>& states,
                                          const RecurrentProduct& recurrent) const {
  return {options_.activation(x + recurrent(states[0]))};
}

SimpleRNN SimpleRNN::from_config(JsonObject& config) {
  return recurrent_from_config<SimpleRNN, SimpleRNNOptions>(config);
}

}  // namespace tessera
