#include <tessera/framework/nn/internal/layer_states.hpp>

#include <functional>
#include <set>

namespace tessera::detail {

std::vector<std::pair<std::string, HasStates*>> layers_with_states(Layer& layer) {
  std::vector<std::pair<std::string, HasStates*>> all;
  std::set<const Layer*> seen;
  const std::function<void(Layer&)> visit = [&](Layer& one) {
    if (!seen.insert(&one).second) return;
    if (auto* const has = dynamic_cast<HasStates*>(&one)) all.emplace_back(one.path(), has);
    for (const auto& inner : one.sublayers()) visit(*inner);
  };
  visit(layer);
  return all;
}

std::string state_name(const std::string& path, const LayerState& state) {
  return "states/" + path + "/" + state.name;
}

NamedVariables layer_states(Layer& layer) {
  NamedVariables all;
  for (const auto& [path, has] : layers_with_states(layer)) {
    for (const LayerState& state : has->states()) {
      if (state.variable.defined()) all.emplace_back(state_name(path, state), state.variable);
    }
  }
  return all;
}

NamedVariables weights_and_states(Layer& layer) {
  NamedVariables all;
  for (const Variable& weight : layer.weights()) all.emplace_back(weight.path(), weight);
  for (auto& state : layer_states(layer)) all.push_back(std::move(state));
  return all;
}

}  // namespace tessera::detail
