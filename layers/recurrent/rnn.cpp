#include <tessera/layers/recurrent/rnn.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/nested_states.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/cell_steps.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/sequence_layer.hpp>
#include <tessera/layers/internal/time_axis.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RNNOptions& o, const Visit& visit) {
  visit("return_sequences", o.return_sequences);
  visit("return_state", o.return_state);
  visit("go_backwards", o.go_backwards);
  visit("stateful", o.stateful);
  visit("unroll", o.unroll);
  visit("zero_output_for_mask", o.zero_output_for_mask);
}

namespace {

class RNNLayer final : public LayerOf<RNNLayer, RNNOptions, SequenceLayer>, public HasNestedStates {
 public:
  static constexpr const char* keras_name = "RNN";
  RNNLayer(const LayerHandle& cell, const RNNOptions& options)
      : LayerOf(options, sequence_options(options)), cell_(cell_of(cell, "RNN " + options.name)) {
    track("cell", cell);
  }
  Json config() const override;
  bool can_be_replayed() const override { return cell_.can_be_replayed(); }
  std::vector<size_t> states_by_cell() const override { return cell_states(cell_); }

 protected:
  void make_weights(const Shapes& inputs) override;
  void check_sequence(const Shape& x) const override;
  Shapes state_shapes(const Shape& x) const override;
  Shape step_shape(const Shape& x) const override { return {x[0], cell_.output_size()}; }
  Steps steps(const DTensor& x, const CallContext& context) override;

 private:
  RNNCell& cell_;  ///< owned as a sublayer
};

const RegisteredLayer registered_rnn("RNN", [](JsonObject& config) {
  const auto options = layer_options_from<RNNOptions>(config);
  const Json cell = config.take<Json>("cell");
  return RNN(layer_from_config(cell, config.path().key("cell")), options);
});

Json RNNLayer::config() const {
  Json json = LayerOf::config();
  json["cell"] = layer_json(cell_);
  return json;
}

void RNNLayer::check_sequence(const Shape& x) const {
  if (x.size() < 3 || x[1] == 0) {
    throw ShapeError(where(), "a sequence has axes batch, time and features", to_string(x),
                     "expand or reshape it first");
  }
  // Throws for inputs that the cell does not take.
  cell_.output_shapes(cell_inputs(cell_, step_of(x)));
}

Shapes RNNLayer::state_shapes(const Shape& x) const {
  Shapes shapes;
  for (const int64_t size : cell_.state_sizes()) shapes.push_back({x.empty() ? -1 : x[0], size});
  return shapes;
}

void RNNLayer::make_weights(const Shapes& inputs) {
  cell_.build(cell_inputs(cell_, step_of(inputs[0])));
}

SequenceLayer::Steps RNNLayer::steps(const DTensor& x, const CallContext& context) {
  Steps all{ops::unstack(x, 1), {}};
  all.step = [step = cell_steps(cell_, all.inputs[0].shape(), context),
              dtype = dtype_policy().compute](const DTensor& inputs,
                                              const std::vector<DTensor>& states) {
    std::vector<DTensor> results = step(inputs, states);
    for (DTensor& result : results) result = ops::cast(result, dtype);
    return results;
  };
  return all;
}

}  // namespace

RNN::RNN(const LayerHandle& cell, const RNNOptions& options)
    : RecurrentHandle(std::make_shared<RNNLayer>(cell, options)) {}

RNN::RNN(const std::vector<LayerHandle>& cells, const RNNOptions& options)
    : RNN(StackedRNNCells(cells), options) {}

}  // namespace tessera
