#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A state of a layer.
struct LayerState {
  std::string name;  ///< name within the layer, "rnn_state_0"
  Shape shape;       ///< -1: an extent that the calls determine
  at::ScalarType dtype = at::kFloat;
  Variable variable = {};  ///< undefined before the first call
};

/// Mixin for layers whose calls keep values for later calls that are no weights, such as a stateful
/// LSTM. Checkpoints contain them, captured steps may use them, and Keras' files lack them.
class HasStates {
 public:
  virtual ~HasStates() = default;
  /// Returns the states; always the same names.
  virtual std::vector<LayerState> states() const = 0;
  /// Sets all states, in their order; an empty list sets them as before the first call.
  virtual void set_states(const std::vector<DTensor>& values) = 0;
};

/// Returns the layers with states among a layer and its sublayers, each once, with their paths.
std::vector<std::pair<std::string, HasStates*>> layers_with_states(Layer& layer);

/// Variables with the names under which checkpoints and callbacks save them.
using NamedVariables = std::vector<std::pair<std::string, Variable>>;

/// Returns "states/PATH/NAME", the name of a state in a checkpoint.
std::string state_name(const std::string& path, const LayerState& state);

/// Returns the states of a layer and its sublayers that exist, by state_name().
NamedVariables layer_states(Layer& layer);

/// Returns the weights by their paths, then layer_states().
NamedVariables weights_and_states(Layer& layer);

}  // namespace tessera::detail
