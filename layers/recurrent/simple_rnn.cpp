#include <tessera/layers/recurrent/recurrent.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/recurrent_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SimpleRNNOptions& o, const Visit& visit) {
  recurrent_fields(o, visit);
}

namespace {

class SimpleRNNLayer final : public RecurrentLayer {
 public:
  SimpleRNNLayer(int64_t units, const SimpleRNNOptions& options)
      : RecurrentLayer({"SimpleRNN", "simple_rnn_cell", 1, {1}, false, {}}, units,
                       copied_options<RecurrentOptions>(options)),
        options_(options) {
    track_activations(options);
  }
  Json config() const override { return layer_config(*this, {{"units", units()}}, options_); }

 protected:
  std::vector<DTensor> step(const DTensor& x, const std::vector<DTensor>& states,
                            const RecurrentProduct& recurrent) const override {
    return {options_.activation(x + recurrent(states[0]))};
  }

 private:
  SimpleRNNOptions options_;
};

const RegisteredLayer registered_simple_rnn("SimpleRNN", [](JsonObject& config) {
  const auto options = layer_options_from<SimpleRNNOptions>(config);
  return SimpleRNN(take_extent(config, "units"), options);
});

}  // namespace

SimpleRNN::SimpleRNN(int64_t units, const SimpleRNNOptions& options)
    : RecurrentHandle(std::make_shared<SimpleRNNLayer>(units, options)) {}

}  // namespace tessera
