#include "apps/mnist/models.hpp"

namespace tessera::mnist {

Recipe core_api(const std::vector<int64_t>& hidden, double learning_rate) {
  const InitializerRef xavier = GlorotUniform({.seed = Seed{22, 23}});
  std::vector<LayerHandle> layers = {Flatten()};
  for (size_t i = 0; i < hidden.size(); ++i) {
    layers.push_back(Dense(hidden[i], {.activation = "relu",
                                       .kernel_initializer = xavier,
                                       .name = "hidden_" + std::to_string(i + 1)}));
  }
  layers.push_back(Dense(10, {.kernel_initializer = xavier, .name = "logits"}));
  return {Sequential(layers, {.name = "core_api"}),
          Adam(learning_rate, {.epsilon_on_corrected_root = true})};
}

Recipe keras(double learning_rate) {
  Sequential model({Flatten(),
                    Dense(128, {.activation = "relu",
                                .kernel_initializer = GlorotUniform({.seed = 1337}),
                                .name = "hidden_1"}),
                    Dense(10, {.kernel_initializer = GlorotUniform({.seed = 1338}),
                               .name = "logits"})},
                   {.name = "keras"});
  return {model, Adam(learning_rate)};
}

}  // namespace tessera::mnist
