#include "apps/bench/mlp.hpp"

#include <numeric>

#include <ATen/ATen.h>

namespace tessera::bench {

TensorDataset mlp_data() {
  const int64_t rows = mlp_batch_size * mlp_batch_count;
  const at::Tensor images = stateless_uniform({rows, mlp_sizes[0]}, Seed{1, 2}).full();
  return TensorDataset(images, images.narrow(1, 0, mlp_sizes.back()).argmax(1));
}

std::vector<int64_t> mlp_rows(int64_t step) {
  std::vector<int64_t> rows(mlp_batch_size);
  std::iota(rows.begin(), rows.end(), step % mlp_batch_count * mlp_batch_size);
  return rows;
}

Sequential mlp_model(const LayoutMap& layouts) {
  const InitializerRef xavier = GlorotUniform({.seed = Seed{22, 23}});
  std::vector<LayerHandle> layers = {Flatten()};
  for (size_t i = 1; i < mlp_sizes.size(); ++i) {
    const char* activation = i + 1 < mlp_sizes.size() ? "relu" : "linear";
    layers.push_back(
        Dense(mlp_sizes[i], {.activation = activation, .kernel_initializer = xavier}));
  }
  Sequential model(layers);
  model.compile({.optimizer = Adam(1e-3, {.epsilon_on_corrected_root = true}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  return model;
}

}  // namespace tessera::bench
